import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mountsBelow } from './mounts.ts';

const MOUNTINFO = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /run/aenv rw - tmpfs tmpfs rw
31 30 0:26 / /run/aenv/vm/a rw - tmpfs tmpfs rw
32 31 0:27 / /run/aenv/vm/a/with\\040blank rw - tmpfs tmpfs rw
33 22 0:28 / /run/aenv2/x rw - tmpfs tmpfs rw
`;

test('finds what is mounted below a folder, inner ones first, and neither the folder itself nor its neighbours', () => {
  assert.deepEqual(mountsBelow(MOUNTINFO, '/run/aenv'), ['/run/aenv/vm/a/with blank', '/run/aenv/vm/a']);
  assert.deepEqual(mountsBelow(MOUNTINFO, '/nowhere'), []);
});
