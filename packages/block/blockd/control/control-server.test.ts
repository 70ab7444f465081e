import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { BlockdConnection } from '../../client/connection.ts';
import { ControlServer, type Handlers } from './control-server.ts';
import { encodeFrame } from './frames.ts';

async function serve(t: TestContext, handlers: Partial<Handlers>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-control-'));
  const path = join(folder, 'control.sock');
  const server = await ControlServer.listen(path, handlers as Handlers, silentLogger);
  t.after(async () => {
    await server.close();
    await rm(folder, { recursive: true });
  });
  return path;
}

test('requests are answered in whatever order they are done, errors with code and remedy', async (t) => {
  const gate = Promise.withResolvers<void>();
  const path = await serve(t, {
    flush: async () => {
      await gate.promise;
      return {};
    },
    create: () => {
      throw new AenvError('no_space', 'full', { remediation: 'make room' });
    },
    list: () => ({ disks: ['a'] }),
  });
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const connection = await BlockdConnection.open(path);
  const flush = connection.call('flush', { disk: 'a', durability: 'strict' });
  assert.deepEqual(await connection.call('list', {}), { disks: ['a'] });
  const origin = { kind: 'layers' as const, layers: [] };
  await assert.rejects(connection.call('create', { disk: 'b', origin, sizeBytes: 512, durability: 'relaxed' }), {
    code: 'no_space',
    message: 'full',
    remediation: 'make room',
  });
  gate.resolve();
  assert.deepEqual(await flush, {});
  connection.close();
  await assert.rejects(connection.call('list', {}), { code: 'block_daemon_failed' });
});

test('what is no operation, or has the wrong arguments, is refused by name and harms nobody', async (t) => {
  const path = await serve(t, { list: () => ({ disks: [] }) });
  const connection = await BlockdConnection.open(path);
  const call = connection.call.bind(connection) as (op: string, args: unknown) => Promise<unknown>;
  await assert.rejects(call('attach', { disk: '../../etc', socket: '/x' }), { code: 'internal', message: /^attach: / });
  await assert.rejects(call('attach', { disk: 'a', socket: 'relative' }), { message: /^attach: / });
  await assert.rejects(call('list', { unknown: 1 }), { message: /^list: / });
  assert.deepEqual(await connection.call('list', {}), { disks: [] });
  connection.close();
});

test('a client that speaks something else is cut off, the others are served on', async (t) => {
  const path = await serve(t, { list: () => ({ disks: [] }) });
  const good = await BlockdConnection.open(path);
  for (const bytes of [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    encodeFrame('no request'),
    encodeFrame({ id: -1, op: 'list' }),
  ]) {
    const socket = connect(path);
    socket.on('error', () => {});
    socket.resume();
    socket.write(bytes);
    await once(socket, 'close');
  }
  assert.deepEqual(await good.call('list', {}), { disks: [] });
  good.close();
});

test('an answer that does not have its shape is an internal fault', async (t) => {
  const path = await serve(t, { list: () => ({ disks: 5 }) as never });
  const connection = await BlockdConnection.open(path);
  await assert.rejects(connection.call('list', {}), { code: 'internal', message: /said something else/ });
  connection.close();
});
