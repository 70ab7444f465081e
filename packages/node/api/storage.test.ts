import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type ApiFixture, apiFixture } from './testing/fixture.ts';

let fixture: ApiFixture;
before(() => {
  fixture = apiFixture();
});
after(() => fixture[Symbol.asyncDispose]());

test('images are listed with their sizes and users', async () => {
  const sizes = { diskSizeMb: 64, layers: 2, bytes: 30, uniqueBytes: 10, sharedBytes: 20, remoteBytes: 0 };
  const pulledAt = new Date('2026-01-02T03:04:05.000Z');
  fixture.storage.list = [{ name: 'host/a:1@x', digest: 'sha256:aa', ...sizes, usedBy: ['template a'], pulledAt }];
  const { status, list } = await fixture.request('GET', '/aenv/images');
  assert.equal(status, 200);
  const { diskSizeMb: diskSizeMB, ...rest } = sizes;
  const shown = { ...rest, diskSizeMB, usedBy: ['template a'], pulledAt: '2026-01-02T03:04:05.000Z' };
  assert.deepEqual(list, [{ name: 'host/a:1@x', digest: 'sha256:aa', ...shown }]);
});

test('an image is removed by name or digest, unless it is used; then it is told who does', async () => {
  const { storage } = fixture;
  storage.collected = { removed: [{ kind: 'layer', path: '/l', bytes: 5 }], freedBytes: 5 };
  const answer = await fixture.request('DELETE', `/aenv/images/${encodeURIComponent('host/a:1')}`);
  assert.deepEqual([answer.status, answer.body], [200, storage.collected]);
  storage.failure = new AenvError('image_in_use', "image 'a' is used by template tools");
  const refused = await fixture.request('DELETE', '/aenv/images/a');
  assert.equal(refused.status, 400);
  assert.equal(refused.body.error_code, 'image_in_use');
  assert.match(String(refused.body.message), /template tools/);
  storage.failure = undefined;
  assert.deepEqual(storage.calls.splice(0), ['rm host/a:1']);
});

test('what nobody needs is removed on demand, what was used lately only when asked for', async () => {
  const { storage } = fixture;
  assert.equal((await fixture.request('POST', '/aenv/images/gc')).status, 200);
  assert.equal((await fixture.request('POST', '/aenv/storage/gc')).status, 200);
  assert.equal((await fixture.request('POST', '/aenv/storage/gc', { all: true })).status, 200);
  assert.equal((await fixture.request('POST', '/aenv/storage/gc', { everything: true })).status, 400);
  assert.deepEqual(storage.calls.splice(0), ['images', 'old', 'all']);
});
