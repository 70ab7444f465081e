import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { eventually, openSocket, to } from '../testing/clients.ts';
import { envdGuest, freshAddress, type Listening, listenAt } from '../testing/guests.ts';
import { House } from '../testing/house.ts';

interface EchoGuest extends Listening {
  readonly closeCodes: number[];
  readonly address: string;
}

/** An echo server that speaks the subprotocol `echo.v1`. */
async function echoGuest(house: House, address = freshAddress()): Promise<EchoGuest> {
  const server = createServer();
  const sockets = new WebSocketServer({
    server,
    handleProtocols: (offered) => (offered.has('echo.v1') ? 'echo.v1' : false),
  });
  const closeCodes: number[] = [];
  sockets.on('connection', (socket) => {
    socket.on('message', (data: RawData, isBinary) => socket.send(data, { binary: isBinary }));
    socket.on('close', (code) => closeCodes.push(code));
    socket.on('error', () => {});
  });
  const guest = await house.keep(listenAt(server, address));
  return { ...guest, closeCodes, address };
}

function dialWebSocket(house: House, port: number, headers: Record<string, string> = {}): WebSocket {
  const url = house.url.replace('http:', 'ws:');
  return new WebSocket(`${url}/chat`, ['other', 'echo.v1'], { headers: { ...to('ia', port), ...headers } });
}

test('a WebSocket keeps its subprotocol, carries bytes, pings and idle time, and closes with its code on both sides', async () => {
  await using house = await House.open({ keepAliveTimeoutMs: 100, headersTimeoutMs: 200, idleMs: 100 });
  const guest = await echoGuest(house);
  house.directory.run('ia', guest.address);
  const socket = dialWebSocket(house, guest.port);
  await once(socket, 'open');
  assert.equal(socket.protocol, 'echo.v1');
  const data = randomBytes(1024 * 1024);
  socket.send(data);
  const [echoed] = await once(socket, 'message');
  assert.ok(data.equals(echoed));
  socket.ping('p');
  assert.equal(String((await once(socket, 'pong'))[0]), 'p');
  await new Promise((resolve) => setTimeout(resolve, 700));
  socket.send('still there');
  assert.equal(String((await once(socket, 'message'))[0]), 'still there');
  socket.close(4001, 'done');
  const [code, reason] = await once(socket, 'close');
  assert.deepEqual([code, String(reason)], [4001, 'done']);
  assert.deepEqual(guest.closeCodes, [4001]);
  await eventually(() => house.door.stats().sandboxSockets === 0 && guest.open() === 0, 'sockets gone');
});

test('a WebSocket on the loopback of the guest goes through envd', async () => {
  await using house = await House.open();
  const guest = await echoGuest(house, '127.0.0.1');
  const address = freshAddress();
  const envd = await house.keep(envdGuest(address, 'host-secret', (_request, response) => void response.end()));
  house.directory.run('ia', address);
  const socket = dialWebSocket(house, guest.port);
  await once(socket, 'open');
  socket.send('x');
  assert.equal(String((await once(socket, 'message'))[0]), 'x');
  socket.close();
  await once(socket, 'close');
  await eventually(() => envd.open() === 0 && guest.open() === 0, 'tunnel gone');
});

test('clients that die abruptly leave no socket on either side', async () => {
  await using house = await House.open();
  const guest = await echoGuest(house);
  house.directory.run('ia', guest.address);
  // Half of them in this process by a reset, half in another one that is killed.
  const script = `
    const { connect } = require('node:net');
    for (let i = 0; i < 100; i++) {
      connect(${new URL(house.url).port}, '127.0.0.1').on('data', () => {}).write(process.argv[1]);
    }
  `;
  const handshake = [
    'GET /chat HTTP/1.1',
    `Host: ${guest.port}-ia.x`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    '\r\n',
  ].join('\r\n');
  const other = spawn(process.execPath, ['-e', script, handshake], { stdio: 'ignore' });
  try {
    const own = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = await openSocket(house.url);
        socket.on('error', () => {}).write(handshake);
        await once(socket, 'data');
        return socket;
      }),
    );
    await eventually(() => guest.open() === 200, '200 connections open', 10_000);
    assert.equal(house.door.stats().sandboxRequests, 200);
    other.kill('SIGKILL');
    for (const socket of own) socket.resetAndDestroy();
    await eventually(() => guest.open() === 0, 'none at the server', 10_000);
    await eventually(() => house.door.stats().clients === 0, 'none at the front door');
    assert.deepEqual(house.door.stats(), { clients: 0, sandboxSockets: 0, sandboxRequests: 0 });
  } finally {
    other.kill('SIGKILL');
  }
});

test('a private sandbox refuses a WebSocket without its token by 403', async () => {
  await using house = await House.open();
  const guest = await echoGuest(house);
  house.directory.run('ia', guest.address, { trafficAccessToken: 'right' });
  const refused = dialWebSocket(house, guest.port);
  const [, answer] = await once(refused, 'unexpected-response');
  assert.equal(answer.statusCode, 403);
  assert.equal(guest.accepted(), 0);
  const allowed = dialWebSocket(house, guest.port, { 'e2b-traffic-access-token': 'right' });
  await once(allowed, 'open');
  allowed.terminate();
});

test('a WebSocket to nowhere gets the same answers as a request', async () => {
  await using house = await House.open({ retryDelaysMs: [1] });
  house.directory.run('ia', freshAddress());
  const closed = dialWebSocket(house, 9);
  assert.equal((await once(closed, 'unexpected-response'))[1].statusCode, 502);
  const unknown = new WebSocket(house.url.replace('http:', 'ws:'), { headers: to('inone', 80) });
  assert.equal((await once(unknown, 'unexpected-response'))[1].statusCode, 502);
  const control = new WebSocket(house.url.replace('http:', 'ws:'));
  assert.equal((await once(control, 'unexpected-response'))[1].statusCode, 200, 'the daemon ignores the offer');
});

test('when an incarnation ends, its WebSockets break without a close frame', async () => {
  await using house = await House.open();
  const guest = await echoGuest(house);
  house.directory.run('ia', guest.address);
  const socket = dialWebSocket(house, guest.port);
  await once(socket, 'open');
  const ended = Promise.race([once(socket, 'error'), once(socket, 'close')]);
  house.directory.end('ia');
  await ended;
  await eventually(() => socket.readyState === WebSocket.CLOSED, 'closed');
  await eventually(() => guest.open() === 0, 'gone at the server');
  assert.deepEqual(guest.closeCodes, [1006]);
});
