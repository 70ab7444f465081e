import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { QmpClient, type QmpEvent } from './client.ts';

const GREETING = '{"QMP": {"version": {}, "capabilities": []}}\r\n';

/** A server that greets and hands every command to `answer`, which writes what it likes. */
async function serve(t: TestContext, answer: (command: { execute: string; id: number }, socket: Socket) => void) {
  const folder = await mkdtemp(join(tmpdir(), 'qmp-'));
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.write(GREETING);
    socket.on('data', (data) => {
      for (const line of data.toString().trim().split('\n')) answer(JSON.parse(line), socket);
    });
  });
  const path = join(folder, 'qmp.sock');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(folder, { recursive: true });
  });
  return path;
}

const ok = (id: number, value: unknown = {}) => `${JSON.stringify({ return: value, id })}\r\n`;

test('answers find their commands although they come out of order and with events between', async (t) => {
  const waiting: number[] = [];
  const path = await serve(t, ({ execute, id }, socket) => {
    if (execute === 'qmp_capabilities') return socket.write(ok(id));
    waiting.push(id);
    if (waiting.length === 2) {
      socket.write(ok(waiting[1] ?? 0, 'second'));
      socket.write('{"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 2}}\r\n');
      socket.write(ok(waiting[0] ?? 0, 'first'));
    }
  });
  const events: QmpEvent[] = [];
  const client = await QmpClient.connect(path, 2000);
  t.after(() => client.close());
  client.onEvent((event) => events.push(event));
  const answers = await Promise.all([client.execute('a', {}, 2000), client.execute('b', {}, 2000)]);
  assert.deepEqual(answers, ['first', 'second']);
  assert.deepEqual(
    events.map((event) => event.name),
    ['STOP'],
  );
});

test('a refused command carries the reason of QEMU', async (t) => {
  const path = await serve(t, ({ execute, id }, socket) => {
    if (execute === 'qmp_capabilities') socket.write(ok(id));
    else socket.write(`${JSON.stringify({ id, error: { class: 'GenericError', desc: 'no such ring' } })}\r\n`);
  });
  const client = await QmpClient.connect(path, 2000);
  t.after(() => client.close());
  await assert.rejects(client.execute('ringbuf-read', {}, 2000), /no such ring/);
});

test('a command without an answer fails in time and a late answer harms nobody', async (t) => {
  const path = await serve(t, ({ execute, id }, socket) => {
    if (execute === 'slow') setTimeout(() => socket.write(ok(id, 'late')), 80);
    else socket.write(ok(id, execute));
  });
  const client = await QmpClient.connect(path, 2000);
  t.after(() => client.close());
  await assert.rejects(client.execute('slow', {}, 20), { code: 'vm_died' });
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(await client.execute('next', {}, 2000), 'next');
});

test('the end of the peer rejects what is waiting, and everything after it', async (t) => {
  const path = await serve(t, ({ execute, id }, socket) => {
    if (execute === 'qmp_capabilities') socket.write(ok(id));
    else socket.destroy();
  });
  const client = await QmpClient.connect(path, 2000);
  await assert.rejects(client.execute('stop', {}, 2000), { code: 'vm_died' });
  await client.closed;
  await assert.rejects(client.execute('cont', {}, 2000), { code: 'vm_died' });
});

for (const [name, garbage] of [
  ['no JSON', 'hello\n'],
  ['JSON that is no message', '[1]\n'],
  ['an endless line', 'x'.repeat(1024 * 1024 + 1)],
] as const) {
  test(`a peer that sends ${name} is left`, async (t) => {
    const path = await serve(t, ({ id }, socket) => socket.write(ok(id) + garbage));
    const client = await QmpClient.connect(path, 2000);
    await client.closed;
  });
}

test('connecting fails when nothing listens and when the listener is silent', async (t) => {
  await assert.rejects(QmpClient.connect('/nonexistent/qmp.sock', 2000), { code: 'vm_died' });
  const path = await serve(t, () => {});
  await assert.rejects(QmpClient.connect(path, 50), { code: 'vm_died' });
});
