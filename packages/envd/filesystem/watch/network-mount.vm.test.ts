import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { testEnvd } from '../../testing/envd.ts';
import { stream, unary } from '../../testing/rpc-client.ts';

// A file system with an empty folder and nothing else. Messages are those of linux/fuse.h, by their numbers.
const FUSE = `
import ctypes, os, struct, sys
where = sys.argv[1]
fd = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
if libc.mount(b"none", where.encode(), b"fuse", 6, options) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
while True:
    try:
        request = os.read(fd, 1 << 20)
    except OSError:
        break
    _, opcode, unique, _ = struct.unpack_from("<IIQQ", request)
    error, body = 0, b""
    if opcode == 26:
        body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 4096, 0, 1, 1, 4096, 1, 0, 0, 0)
    elif opcode == 3:
        body = struct.pack("<QII", 1, 0, 0) + struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
    elif opcode == 17:
        body = struct.pack("<5Q4I24x", 1, 1, 1, 1, 1, 4096, 255, 4096, 0)
    elif opcode in (27, 28, 29, 25):
        body = struct.pack("<QII", 0, 0, 0) if opcode == 27 else b""
    elif opcode in (2, 36, 42):
        continue
    else:
        error = -38
    os.write(fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
`;

test('a network mount is only watched by those who say that they know it', async () => {
  await using envd = await testEnvd();
  const mount = join(envd.dir, 'mount');
  await mkdir(mount);
  const server = spawn('python3', ['-c', FUSE, mount], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'close');
  try {
    const first = await Promise.race([once(server.stdout, 'data'), ended]);
    assert.match(String(first), /mounted/);
    const refused = await unary(envd.url, 'filesystem.Filesystem/CreateWatcher', { path: mount });
    assert.deepEqual(refused.body, {
      code: 'invalid_argument',
      message: `cannot watch path on network filesystem: ${mount}`,
    });
    for await (const { flags, message } of stream(envd.url, 'filesystem.Filesystem/WatchDir', { path: mount })) {
      assert.deepEqual([flags, message.error?.code], [2, 'invalid_argument']);
    }
    const body = { path: mount, allowNetworkMounts: true, recursive: true };
    const allowed = await unary(envd.url, 'filesystem.Filesystem/CreateWatcher', body);
    assert.equal(allowed.status, 200, JSON.stringify(allowed.body));
    await unary(envd.url, 'filesystem.Filesystem/RemoveWatcher', { watcherId: allowed.body.watcherId });
  } finally {
    spawn('umount', ['-l', mount], { stdio: 'inherit' });
    await ended;
  }
});
