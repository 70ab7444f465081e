import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import fc from 'fast-check';
import { isCode } from '../testing/is-code.ts';
import { parseDeviceConfig } from './device-config.ts';
import { findLower } from './find-lower.ts';

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;

test('a description as the tools of the reference write it', () => {
  const config = parseDeviceConfig(
    JSON.stringify({
      repoBlobUrl: 'https://registry.example/v2/library/redis/blobs',
      lowers: [
        { digest: DIGEST, size: 40_000, dir: '/snapshots/1' },
        { file: '/layers/2/overlaybd.commit', digest: '' },
        { dir: '/snapshots/trace' },
      ],
      upper: { data: '/rw/writable_data', index: '/rw/writable_index' },
      resultFile: '/rw/result',
      accelerationLayer: true,
      recordTracePath: '',
      download: { enable: true, delay: 120, maxMBps: 100, tryCnt: 5, blockSize: 262_144 },
      hostedBy: { somebody: 'else' },
    }),
  );
  assert.deepEqual(config, {
    repoBlobUrl: 'https://registry.example/v2/library/redis/blobs',
    lowers: [{ digest: DIGEST, size: 40_000, dir: '/snapshots/1' }, { file: '/layers/2/overlaybd.commit' }],
    upper: { data: '/rw/writable_data', index: '/rw/writable_index' },
    resultFile: '/rw/result',
    traceFolder: '/snapshots/trace',
    download: { enable: true, delay: 120, maxMBps: 100, tryCnt: 5, blockSize: 262_144 },
  });
});

test('what is wrong is named with its path', () => {
  const wrong: [unknown, RegExp][] = [
    [[], /config is not an object/],
    [{ lowers: {} }, /config\.lowers/],
    [{ lowers: new Array(300).fill({ file: 'x' }) }, /config\.lowers/],
    [{ lowers: ['x'] }, /config\.lowers\[0\]/],
    [{ lowers: [{}] }, /neither file nor dir nor digest/],
    [{ lowers: [{ digest: 'sha256:../../x' }] }, /no sha256 digest/],
    [{ lowers: [{ dir: 'x', size: -1 }] }, /config\.lowers\[0\]\.size/],
    [{ lowers: [{ dir: 'x', targetDigest: DIGEST }] }, /turboOCI/],
    [{ upper: { data: 'x' } }, /upper/],
    [{ repoBlobUrl: 7 }, /config\.repoBlobUrl/],
    [{ download: { enable: 'yes' } }, /config\.download\.enable/],
  ];
  for (const [json, message] of wrong) {
    assert.throws(() => parseDeviceConfig(JSON.stringify(json)), message);
    assert.throws(() => parseDeviceConfig(JSON.stringify(json)), isCode('image_invalid'));
  }
  assert.throws(() => parseDeviceConfig('{'), isCode('image_invalid'));
  assert.throws(() => parseDeviceConfig(' '.repeat(2 ** 20 + 1)), isCode('image_invalid'));
});

test('any document at all is read or refused by name', () => {
  const keys = ['lowers', 'upper', 'repoBlobUrl', 'download', 'accelerationLayer', 'resultFile'];
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...keys), fc.jsonValue()), (json) => {
      try {
        parseDeviceConfig(JSON.stringify(json));
      } catch (error) {
        assert.ok(error instanceof AenvError && error.code === 'image_invalid', String(error));
      }
    }),
    { seed: 99, numRuns: process.env.AENV_SOAK === '1' ? 200_000 : 1000 },
  );
});

test('a layer is looked for in its file, in its folder by the known names, then in the registry', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'block-config-'));
  try {
    const config = { lowers: [], repoBlobUrl: 'https://registry.example/v2/x/blobs/' };
    const lower = { dir: folder, digest: DIGEST, size: 5 };
    const url = `https://registry.example/v2/x/blobs/${DIGEST}`;
    assert.deepEqual(await findLower(lower, config), { kind: 'remote', url, digest: DIGEST, size: 5 });
    await mkdir(join(folder, 'overlaybd.commit'));
    for (const name of ['overlaybd.sealed', '.commit']) {
      await writeFile(join(folder, name), '');
      assert.deepEqual(await findLower(lower, config), { kind: 'file', path: join(folder, name) });
    }
    assert.deepEqual(await findLower({ ...lower, file: '/given' }, config), { kind: 'file', path: '/given' });
    await rm(join(folder, '.commit'));
    await rm(join(folder, 'overlaybd.sealed'));
    await assert.rejects(findLower(lower, { lowers: [] }), isCode('image_invalid'));
    await assert.rejects(findLower({ dir: folder }, config), isCode('image_invalid'));
  } finally {
    await rm(folder, { recursive: true });
  }
});
