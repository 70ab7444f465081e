import assert from 'node:assert/strict';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { COMMAND } from './protocol/numbers.ts';
import { NbdClient } from './testing/client.ts';
import { serveMemory } from './testing/fixture.ts';
import { requestBytes, writeBytes } from './testing/wire.ts';

const SOAK = process.env.AENV_SOAK === '1';
const MIB = 1024 * 1024;

async function untilUsed({ budget }: { budget: { used: number } }, is: (bytes: number) => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (; !is(budget.used); await delay(5)) assert.ok(Date.now() < deadline, `${budget.used} bytes are in use`);
}

test('a client that asks and does not listen is read no further, and frees everything when it goes', async (t) => {
  // Two of its requests and what each costs beside its data.
  const inFlightBytes = 2 * (MIB + 64);
  const { path, volume, exported } = await serveMemory(t, { size: 4 * MIB, inFlightBytes });
  volume.data.fill(1);
  const client = await NbdClient.connect(path);
  client.socket.pause();
  const request = requestBytes({ type: COMMAND.read, length: MIB });
  for (let count = 0; count < 200; count++) client.socket.write(request);
  await untilUsed(exported, (used) => used === inFlightBytes);
  await delay(50);
  assert.equal(exported.budget.used, inFlightBytes);
  await using other = await NbdClient.connect(path);
  const waiting = other.read(0, 4096);
  assert.equal(await Promise.race([waiting, delay(50)]), undefined, 'the budget is that of the export');
  client.socket.destroy();
  assert.equal((await waiting).length, 4096);
  await client.closed;
  await untilUsed(exported, (used) => used === 0);
});

test('a client that sends half of its writes holds no more than the budget, and lets go of it', async (t) => {
  const { path, exported } = await serveMemory(t, { inFlightBytes: MIB });
  const clients = await Promise.all([1, 2, 3, 4].map(() => NbdClient.connect(path)));
  for (const { socket } of clients) {
    socket.write(requestBytes({ type: COMMAND.write, length: 900_000 }).subarray(0, 28));
    socket.write(Buffer.alloc(1000));
  }
  await untilUsed(exported, (used) => used > 0);
  await delay(50);
  assert.ok(exported.budget.used <= MIB && exported.budget.used > 0);
  for (const { socket } of clients) socket.destroy();
  await Promise.all(clients.map(({ closed }) => closed));
  await untilUsed(exported, (used) => used === 0);
});

test('bytes of one client never become those of another, wherever their requests are cut', async (t) => {
  const { path, volume } = await serveMemory(t);
  await using idle = await NbdClient.connect(path);
  const clients = await Promise.all([1, 2, 3].map(() => NbdClient.connect(path)));
  const streams = clients.map((_, at) => writeBytes(at * 8192, Buffer.alloc(8192, at + 1), 1n));
  const answers = clients.map(({ socket }) => once(socket.removeAllListeners('data'), 'data'));
  for (let start = 0, end = 10; start < 8220; start = end, end += 1009) {
    for (const [at, { socket }] of clients.entries()) {
      socket.write(streams[at]?.subarray(start, end) ?? '');
      await idle.read(0, 512);
    }
  }
  await Promise.all(answers);
  for (const at of clients.keys()) {
    assert.ok(volume.data.subarray(at * 8192, (at + 1) * 8192).equals(Buffer.alloc(8192, at + 1)), `client ${at}`);
  }
  for (const { socket } of clients) socket.destroy();
  await Promise.all(clients.map(({ closed }) => closed));
});

test('one request may be larger than the budget, so that none waits for ever', async (t) => {
  const { path } = await serveMemory(t, { size: 8 * MIB, inFlightBytes: 65_536 });
  await using client = await NbdClient.connect(path, { structured: true });
  const answers = await Promise.all([client.read(0, 4 * MIB), client.read(4 * MIB, 4 * MIB), client.read(0, 512)]);
  assert.deepEqual(
    answers.map(({ length }) => length),
    [4 * MIB, 4 * MIB, 512],
  );
});

test('a write that is announced with 4 GiB, or what is no request, ends the connection', async (t) => {
  const { path, exported } = await serveMemory(t);
  for (const bytes of [requestBytes({ type: COMMAND.write, length: 0xffffffff }), Buffer.alloc(28, 7)]) {
    const client = await NbdClient.connect(path);
    client.socket.write(bytes);
    await client.closed;
    assert.equal(exported.budget.used, 0);
  }
});

test('at most 16 clients at a time; the socket is for its owner and is gone when the server is', async (t) => {
  const { path, server } = await serveMemory(t);
  const clients = await Promise.all(Array.from({ length: 16 }, () => NbdClient.connect(path)));
  await assert.rejects(NbdClient.connect(path), /connection is gone/);
  assert.equal(server.connections, 16);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  await server.close();
  await Promise.all(clients.map(({ closed }) => closed));
  await assert.rejects(stat(path), { code: 'ENOENT' });
});

test('random bytes in place of requests never bring the server down nor leave memory behind', async (t) => {
  const { path, exported } = await serveMemory(t);
  const request = fc
    .record({
      type: fc.integer({ min: 0, max: 10 }),
      flags: fc.integer({ min: 0, max: 40 }),
      offset: fc.oneof(fc.bigInt({ min: 0n, max: BigInt(MIB) }), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
      length: fc.oneof(fc.integer({ min: 0, max: 70_000 }), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
      data: fc.uint8Array({ maxLength: 600 }),
    })
    .map(({ data, ...fields }) => requestBytes(fields, data));
  const part = fc.oneof({ weight: 9, arbitrary: request }, { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }) });
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(part, { maxLength: 20 }), async (structured, parts) => {
      const client = await NbdClient.connect(path, { structured });
      // Its replies answer no request that it knows of.
      client.socket.removeAllListeners('data');
      client.socket.resume();
      client.socket.end(Buffer.concat(parts));
      await client.closed;
      await using next = await NbdClient.connect(path);
      assert.equal((await next.read(0, 512)).length, 512);
    }),
    { seed: 2, numRuns: SOAK ? 20_000 : 150 },
  );
  assert.ok(exported.budget.used <= 64);
});
