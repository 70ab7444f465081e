import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { DiskSpace } from './disk-space.ts';

const MIB = 2 ** 20;

test('room is promised once, what is kept free is kept, and a refusal tells the figures and the key', async () => {
  const space = new DiskSpace({ folder: '/home', keepFreeBytes: 100 * MIB, readFree: async () => 400 * MIB });
  const first = await space.reserve(200 * MIB, 'a pause');
  await assert.rejects(space.reserve(101 * MIB, 'a fork'), (error) => {
    assert.ok(error instanceof AenvError && error.code === 'no_space');
    assert.equal(
      error.message,
      'a fork may take 101 MiB of /home, which has 200 MiB free, 100 MiB of which are kept free',
    );
    assert.match(error.remediation, /storage\.keep_free_bytes/);
    return true;
  });
  await space.reserve(100 * MIB, 'a fork');
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await space.reserve(200 * MIB, 'a snapshot');
  await assert.rejects(space.reserve(1, 'a snapshot'), { code: 'no_space' });
});

test('where others have taken what was promised, nothing is free, and not less than that', async () => {
  let free = 400 * MIB;
  const space = new DiskSpace({ folder: '/home', keepFreeBytes: 0, readFree: async () => free });
  using _promised = await space.reserve(200 * MIB, 'a pause');
  free = 84 * MIB;
  await assert.rejects(space.reserve(MIB, 'a fork'), {
    message: 'a fork may take 1 MiB of /home, which has 0 MiB free, 0 MiB of which are kept free',
    details: { neededBytes: MIB, freeBytes: 0, keepFreeBytes: 0 },
  });
});

test('the disk of a folder that is there is asked', async () => {
  await assert.rejects(new DiskSpace({ folder: '/', keepFreeBytes: 0 }).reserve(2 ** 60, 'all'), { code: 'no_space' });
});
