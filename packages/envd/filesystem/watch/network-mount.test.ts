import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNetworkType, isOnNetworkMount } from './network-mount.ts';

test('file systems that others can change are network mounts, whatever sign their number has', () => {
  for (const type of [0x6969, 0xff534d42, 0xff534d42 | 0, 0x517b, 0xfe534d42, 0xfe534d42 | 0, 0x65735546]) {
    assert.equal(isNetworkType(type), true, type.toString(16));
  }
  // ext4, tmpfs, overlay, proc
  for (const type of [0xef53, 0x01021994, 0x794c7630, 0x9fa0]) assert.equal(isNetworkType(type), false);
});

test('the file systems of this host are none', async () => {
  for (const path of ['/proc', '/dev/shm', import.meta.dirname]) assert.equal(await isOnNetworkMount(path), false);
  await assert.rejects(isOnNetworkMount('/no/such'), { code: 'ENOENT' });
});
