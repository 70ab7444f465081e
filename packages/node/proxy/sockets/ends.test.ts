import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { breakSocket } from './ends.ts';

/** Two ends of a connection over TCP; the second one does not read. */
async function pair(t: TestContext): Promise<readonly [Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const accepted = once(server, 'connection');
  const peer = connect({ port: address.port, allowHalfOpen: true }).on('error', () => {});
  peer.pause();
  const [socket] = (await accepted) as [Socket];
  t.after(() => {
    socket.destroy();
    peer.destroy();
    server.close();
  });
  return [socket.on('error', () => {}), peer];
}

const STATES: readonly (readonly [string, (socket: Socket) => void, string])[] = [
  ['nothing', () => {}, 'ECONNRESET'],
  ['a part of what it has to say', (socket) => void socket.write('begun'), 'ECONNRESET'],
  ['more than the other side takes', (socket) => void socket.end(Buffer.alloc(64 * 2 ** 20)), 'ECONNRESET'],
  ['all, and is sending its end', (socket) => void socket.end('all'), 'end'],
];

for (const [state, say, expected] of STATES) {
  test(`a connection that has sent ${state} is closed at once, and told as ${expected}`, {
    timeout: 20_000,
  }, async (t) => {
    const [socket, peer] = await pair(t);
    const closed = once(socket, 'close');
    const told = new Promise<string>((resolve) => {
      peer.on('error', (error) => resolve('code' in error ? String(error.code) : String(error)));
      peer.on('end', () => resolve('end'));
    });
    say(socket);
    breakSocket(socket);
    await closed;
    peer.resume();
    assert.equal(await told, expected);
  });
}
