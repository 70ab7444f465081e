import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { apiFixture } from './testing/fixture.ts';

const image = 'debian:13';
const drive = (driveID: string, more: object = {}) => ({ driveID, source: { image: 'data:1' }, ...more });

test('drives come with a cold sandbox, read-only at /mnt/DRIVEID unless told otherwise', async () => {
  await using api = apiFixture();
  const attachedDrives = [
    drive('data'),
    drive('out.1', { readOnly: false, mountPath: '/srv/out', subPath: 'a/b', diskSizeMB: 64 }),
    drive('none', { readOnly: null, mountPath: null, subPath: null, diskSizeMB: null }),
  ];
  const { status, text } = await api.request('POST', '/sandboxes-cold', { image, attachedDrives });
  assert.equal(status, 201, text);
  assert.deepEqual(api.drives.prepared, [
    { driveId: 'data', image: 'data:1', mountPath: '/mnt/data', readOnly: true },
    { driveId: 'out.1', image: 'data:1', mountPath: '/srv/out', readOnly: false, subPath: 'a/b', sizeMb: 64 },
    { driveId: 'none', image: 'data:1', mountPath: '/mnt/none', readOnly: true },
  ]);
  const [created] = api.sandboxes.created;
  assert.deepEqual(
    created?.drives?.map((start) => start.drive.label),
    ['aenv-drive-1', 'aenv-drive-2', 'aenv-drive-3'],
  );
  assert.equal((await api.request('POST', '/sandboxes-cold', { image, attachedDrives: [] })).status, 201);
  api.drives.failure = new AenvError('image_not_found', "drive 'data': no such image");
  const refused = await api.request('POST', '/sandboxes-cold', { image, attachedDrives });
  assert.deepEqual([refused.status, refused.body.message], [404, "drive 'data': no such image"]);
  assert.equal(api.sandboxes.created.length, 2);
});

test('bad drives are refused by name before anything is fetched', async () => {
  await using api = apiFixture();
  const many = (count: number) => Array.from({ length: count }, (_, at) => drive(`d${at}`));
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [[{ driveID: 'x' }], /attachedDrives.*source/],
    [[drive('')], /driveID/],
    [[drive('a/b')], /driveID: must be 1 to 64/],
    [[drive('a'.repeat(65))], /driveID/],
    [[drive('tools')], /driveID: must not be one of root/],
    [[drive('a'), drive('a', { mountPath: '/b' })], /\b1\b.*driveID: used twice/],
    [[drive('a'), drive('b', { mountPath: '/mnt/a' })], /\b1\b.*mountPath: used twice/],
    [[drive('a', { mountPath: 'data' })], /mountPath: must be absolute/],
    [[drive('a', { mountPath: '/' })], /mountPath/],
    [[drive('a', { mountPath: '/a/../etc' })], /mountPath/],
    [[drive('a', { mountPath: '/a//b' })], /mountPath/],
    [[drive('a', { mountPath: '/a b' })], /mountPath: must not have blanks/],
    [[drive('a', { mountPath: '/a:b' })], /mountPath/],
    [[drive('a', { mountPath: '/proc/x' })], /mountPath: must not be within/],
    [[drive('a', { mountPath: '/run' })], /mountPath: must not be within/],
    [[drive('a', { subPath: '/abs' })], /subPath: must be relative/],
    [[drive('a', { subPath: 'x/../..' })], /subPath/],
    [[drive('a', { diskSizeMB: 8 })], /diskSizeMB/],
    [[drive('a', { writable: true })], /writable/],
    [many(15), /at most 14 drives can be attached/],
    ['data', /attachedDrives/],
  ];
  for (const [attachedDrives, message] of cases) {
    const { status, body } = await api.request('POST', '/sandboxes-cold', { image, attachedDrives });
    assert.equal(status, 400, JSON.stringify(attachedDrives));
    assert.match(String(body.message), message);
  }
  assert.deepEqual([api.drives.prepared, api.images.cold], [[], []]);
  const warm = await api.request('POST', '/sandboxes', { templateID: 'base', attachedDrives: [drive('a')] });
  assert.equal(warm.status, 400);
  assert.equal((await api.request('POST', '/sandboxes-cold', { image, attachedDrives: many(14) })).status, 201);
});
