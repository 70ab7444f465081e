import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { CHUNK, COMMAND, COMMAND_FLAG, ERRNO, EXTENT } from '../protocol/numbers.ts';
import { NbdClient } from '../testing/client.ts';
import { serveMemory } from '../testing/fixture.ts';

const { read, write, flush, trim, writeZeroes, blockStatus, disconnect } = COMMAND;
const bytes = (length: number, seed = 1) => Buffer.from(new Uint8Array(length).map((_, at) => at * 7 + seed));

for (const structured of [false, true]) {
  const how = structured ? 'structured' : 'simple';

  test(`what is written is read back, also across chunks of the socket (${how})`, async (t) => {
    const { path, volume } = await serveMemory(t, { size: 8 << 20 });
    await using client = await NbdClient.connect(path, { structured });
    const large = bytes(3 << 20);
    await client.write(1 << 20, large);
    assert.ok(volume.data.subarray(1 << 20, 4 << 20).equals(large));
    assert.ok(
      (await client.read((1 << 20) - 4096, 2 << 20)).equals(volume.data.subarray((1 << 20) - 4096, (3 << 20) - 4096)),
    );
    assert.ok((await client.read(0, 4096)).equals(Buffer.alloc(4096)));
  });

  test(`reads and writes of any offset and length are the same as on a flat disk (${how})`, async (t) => {
    const { path, volume } = await serveMemory(t);
    await using client = await NbdClient.connect(path, { structured });
    const flat = Buffer.from(volume.data);
    for (const [offset, length] of [
      [1, 1],
      [511, 2],
      [513, 1023],
      [4095, 4098],
      [volume.size - 5, 5],
    ] as const) {
      const data = bytes(length, offset);
      await client.write(offset, data);
      data.copy(flat, offset);
      assert.ok((await client.read(offset, length)).equals(data));
    }
    const errno = await client.errno({ type: writeZeroes, offset: 600n, length: 5000 });
    flat.fill(0, 600, 5600);
    assert.equal(errno, 0);
    assert.ok(volume.data.equals(flat));
  });

  test(`a request outside the disk or with unknown flags is refused, and the next one served (${how})`, async (t) => {
    const { path, volume } = await serveMemory(t);
    await using client = await NbdClient.connect(path, { structured });
    const end = BigInt(volume.size);
    const cases = [
      [{ type: read, offset: end - 1n, length: 2 }, ERRNO.invalid],
      [{ type: read, offset: 2n ** 63n, length: 512 }, ERRNO.invalid],
      [{ type: read, length: 33 << 20 }, ERRNO.invalid],
      [{ type: trim, offset: end, length: 1 }, ERRNO.invalid],
      [{ type: writeZeroes, offset: end, length: 1 }, ERRNO.noSpace],
      [{ type: read, length: 512, flags: COMMAND_FLAG.fua }, ERRNO.invalid],
      [{ type: 5, length: 512 }, ERRNO.invalid],
      [{ type: 9 }, ERRNO.invalid],
      [{ type: flush, flags: 64 }, ERRNO.invalid],
    ] as const;
    for (const [fields, errno] of cases) assert.equal(await client.errno(fields), errno, JSON.stringify(fields.type));
    assert.equal(await client.errno({ type: write, offset: end - 4n }, bytes(4096)), ERRNO.noSpace);
    assert.equal(await client.errno({ type: blockStatus, length: 512 }), structured ? 0 : ERRNO.invalid);
    await client.write(0, bytes(512));
    assert.ok(volume.data.subarray(0, 512).equals(bytes(512)));
  });
}

test('a read-only disk refuses every change and takes their data out of the stream', async (t) => {
  const { path, volume } = await serveMemory(t, { readOnly: true });
  await using client = await NbdClient.connect(path);
  assert.equal(await client.errno({ type: write }, bytes(100_000)), ERRNO.permission);
  assert.equal(await client.errno({ type: trim, length: 512 }), ERRNO.permission);
  assert.equal(await client.errno({ type: writeZeroes, length: 512 }), ERRNO.permission);
  assert.equal(await client.errno({ type: flush }), 0);
  assert.ok((await client.read(0, 512)).equals(volume.data.subarray(0, 512)));
});

test('trim discards whole sectors, write-zeroes every byte', async (t) => {
  const { path, volume } = await serveMemory(t);
  volume.write(bytes(8192), 0);
  await using client = await NbdClient.connect(path);
  assert.equal(await client.errno({ type: trim, offset: 100n, length: 1000 }), 0);
  assert.equal(volume.data[511], bytes(512)[511]);
  assert.ok(volume.data.subarray(512, 1024).every((byte) => byte === 0));
  assert.equal(volume.data[1024], bytes(1025)[1024]);
  const flags = COMMAND_FLAG.noHole | COMMAND_FLAG.fastZero;
  assert.equal(await client.errno({ type: writeZeroes, offset: 4096n, length: 4096, flags }), 0);
  assert.ok(volume.data.subarray(4096, 8192).every((byte) => byte === 0));
});

test('a flush is the volume’s own, forced unit access is strict', async (t) => {
  const { path, volume } = await serveMemory(t);
  await using client = await NbdClient.connect(path);
  await client.write(0, bytes(512));
  assert.deepEqual(volume.flushes, []);
  assert.equal(await client.errno({ type: flush }), 0);
  await client.write(0, bytes(512), COMMAND_FLAG.fua);
  await client.write(3, bytes(3), COMMAND_FLAG.fua);
  assert.equal(await client.errno({ type: writeZeroes, length: 512, flags: COMMAND_FLAG.fua }), 0);
  assert.equal(await client.errno({ type: trim, length: 512, flags: COMMAND_FLAG.fua }), 0);
  assert.deepEqual(volume.flushes, [undefined, 'strict', 'strict', 'strict', 'strict']);
});

test('a read that waits holds up nothing that comes after it', async (t) => {
  const { path, volume } = await serveMemory(t);
  const gate = Promise.withResolvers<void>();
  const flushGate = Promise.withResolvers<void>();
  await using client = await NbdClient.connect(path);
  volume.gate = gate.promise;
  volume.flushGate = flushGate.promise;
  const first = client.request({ type: read, cookie: 1n, length: 512 });
  const second = client.request({ type: flush, cookie: 2n });
  await client.request({ type: write, cookie: 3n, offset: 4096n }, bytes(512));
  assert.deepEqual(client.answered, [3n]);
  flushGate.resolve();
  await second;
  gate.resolve();
  await first;
  assert.deepEqual(client.answered, [3n, 2n, 1n]);
});

test('writes that come together are appended together', async (t) => {
  const { path, volume } = await serveMemory(t);
  await using client = await NbdClient.connect(path);
  client.socket.cork();
  const writes = Array.from({ length: 12 }, (_, at) => client.write(at * 4096, bytes(4096, at)));
  client.socket.uncork();
  await Promise.all(writes);
  assert.ok(volume.groups.length < 6, `groups of ${volume.groups}`);
  for (let at = 0; at < 12; at++) assert.ok((await client.read(at * 4096, 4096)).equals(bytes(4096, at)));
});

test('long reads tell of holes and do not carry them, unless asked not to fragment', async (t) => {
  const { path, volume } = await serveMemory(t, { size: 4 << 20 });
  volume.write(bytes(128 << 10), 1 << 20);
  await using client = await NbdClient.connect(path, { structured: true });
  const parts = await client.request({ type: read, length: 4 << 20 });
  assert.deepEqual(
    parts.map(({ type, data }) => [type, data.length]),
    [
      [CHUNK.offsetHole, 12],
      [CHUNK.offsetData, 8 + (128 << 10)],
      [CHUNK.offsetHole, 12],
      [CHUNK.none, 0],
    ],
  );
  assert.ok((await client.read(1000, (4 << 20) - 1000)).equals(volume.data.subarray(1000)));
  const whole = await client.request({ type: read, length: 4 << 20, flags: COMMAND_FLAG.dontFragment });
  assert.deepEqual(
    whole.map(({ type }) => type),
    [CHUNK.offsetData],
  );
  volume.gate = Promise.resolve();
  assert.ok((await client.read(0, 4 << 20)).equals(volume.data), 'the same when data has to be waited for');
  assert.deepEqual(await client.request({ type: read, length: 0 }), [
    { type: CHUNK.none, errno: 0, data: Buffer.alloc(0) },
  ]);
});

test('block status tells data and holes; one extent where one is asked for', async (t) => {
  const { path, volume } = await serveMemory(t);
  volume.write(bytes(1024), 4096);
  volume.write(bytes(1024), 5120);
  await using client = await NbdClient.connect(path, { structured: true });
  const extents = async (offset: number, length: number, flags = 0) => {
    const [part] = await client.request({ type: blockStatus, offset: BigInt(offset), length, flags });
    assert.equal(part?.type, CHUNK.blockStatus);
    const found: number[][] = [];
    for (let at = 4; at < (part?.data.length ?? 0); at += 8) {
      found.push([part?.data.readUInt32BE(at) ?? 0, part?.data.readUInt32BE(at + 4) ?? 0]);
    }
    return found;
  };
  const hole = EXTENT.hole | EXTENT.zero;
  assert.deepEqual(await extents(0, 1 << 20), [
    [4096, hole],
    [2048, 0],
    [(1 << 20) - 6144, hole],
  ]);
  assert.deepEqual(await extents(4100, 100), [[100, 0]]);
  assert.deepEqual(await extents(0, 1 << 20, COMMAND_FLAG.requestOne), [[4096, hole]]);
  assert.equal(await client.errno({ type: blockStatus, length: 0 }), ERRNO.invalid);
});

test('a full disk is ENOSPC, a layer that cannot be read EIO, and only that request fails', async (t) => {
  const { path, volume, exported } = await serveMemory(t);
  for (const structured of [false, true]) {
    await using client = await NbdClient.connect(path, { structured });
    volume.fault = new AenvError('no_space', 'full');
    assert.equal(await client.errno({ type: write }, bytes(512)), ERRNO.noSpace);
    volume.fault = new Error('broken');
    assert.equal(await client.errno({ type: read, length: 512 }), ERRNO.io);
    assert.equal(await client.errno({ type: read, length: 128 << 10 }), ERRNO.io);
    assert.equal(await client.errno({ type: flush }), ERRNO.io);
    if (structured) assert.equal(await client.errno({ type: blockStatus, length: 512 }), ERRNO.io);
    volume.gate = Promise.resolve();
    volume.fault = undefined;
    volume.fault = new Error('broken later');
    const later = client.errno({ type: read, length: 512 });
    assert.equal(await later, ERRNO.io);
    volume.gate = undefined;
    volume.fault = undefined;
    assert.ok((await client.read(0, 512)).equals(volume.data.subarray(0, 512)));
  }
  assert.ok(exported.counters.errors >= 8);
  assert.equal(exported.budget.used, 0);
});

test('a goodbye lets what is under way finish', async (t) => {
  const { path, volume } = await serveMemory(t);
  const gate = Promise.withResolvers<void>();
  volume.write(bytes(512), 0);
  const client = await NbdClient.connect(path);
  volume.gate = gate.promise;
  const reading = client.read(0, 512);
  void client.request({ type: disconnect });
  setTimeout(gate.resolve, 20);
  assert.ok((await reading).equals(bytes(512)));
  await client.closed;
});
