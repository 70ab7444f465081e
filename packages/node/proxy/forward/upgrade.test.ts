import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { eventually, exchangeRaw, openSocket, readToEnd, to } from '../testing/clients.ts';
import { envdGuest, freshAddress, type Listening, listenAt, rawGuest } from '../testing/guests.ts';
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

test('a client that dies while the handshake waits is noticed', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const guest = await house.keep(rawGuest(address, (socket) => void socket.resume().on('end', () => socket.end())));
  house.directory.run('ia', address);
  for (const end of ['destroy', 'resetAndDestroy'] as const) {
    const socket = await openSocket(house.url);
    socket.write(`GET / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await eventually(() => guest.open() === 1, 'at the server');
    socket[end]();
    await eventually(() => guest.open() === 0 && house.door.stats().sandboxRequests === 0, `let go after ${end}`);
  }
});

test('a server that does not close after the client has is cut off', async () => {
  await using house = await House.open({ webSocketHalfOpenMs: 200 });
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'));
      socket.on('data', () => {});
    }),
  );
  house.directory.run('ia', address);
  const socket = await openSocket(house.url);
  socket.write(`GET / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  await once(socket, 'data');
  socket.end();
  await eventually(() => house.door.stats().sandboxSockets === 0, 'cut');
});

test('any protocol passes as raw bytes: what comes early, what the server says first, and half-closed streams', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      let text = '';
      let upgraded = false;
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
        const head = text.indexOf('\r\n\r\n');
        if (upgraded || head === -1) return;
        upgraded = true;
        assert.match(text, /^GET \/x HTTP\/1\.1\r\n/);
        assert.match(text, /\r\nUpgrade: Tcp\/9\r\n/);
        text = text.slice(head + 4);
        const answer = 'HTTP/1.1 101 Over To You\r\nUpgrade: Tcp/9\r\nConnection: Upgrade\r\nX-Kept: 1\r\n\r\nhello ';
        setTimeout(() => socket.write(answer), 50);
      });
      socket.on('end', () => socket.end(`got ${text}`));
    }),
  );
  house.directory.run('ia', address);
  const socket = await openSocket(house.url);
  socket.write(`GET /x HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\nConnection: upgrade\r\nUpgrade: Tcp/9\r\n\r\nearly `);
  setTimeout(() => socket.end('late'), 150);
  const { text, end } = await readToEnd(socket);
  assert.match(
    text,
    /^HTTP\/1\.1 101 Over To You\r\nConnection: Upgrade\r\nUpgrade: Tcp\/9\r\nX-Kept: 1\r\n\r\nhello got early late$/,
  );
  assert.equal(end, 'fin');
});

test('a refused handshake is relayed as it is', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const body = 'x'.repeat(300_000);
  const guest = await house.keep(
    listenAt(
      createServer().on('upgrade', (request, socket) => {
        const status = request.url === '/426' ? '426 Upgrade Required\r\nUpgrade: other' : '401 Unauthorized';
        socket.end(
          `HTTP/1.1 ${status}\r\nX-Why: no\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
      }),
      address,
    ),
  );
  house.directory.run('ia', address);
  const ask = (path: string) =>
    exchangeRaw(
      house.url,
      `GET ${path} HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
  const refused = await ask('/');
  assert.match(
    refused.text,
    /^HTTP\/1\.1 401 Unauthorized\r\nX-Why: no\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 300000\r\nConnection: close\r\n\r\nx+$/,
  );
  assert.equal(refused.end, 'fin');
  assert.equal(refused.text.split('\r\n\r\n')[1]?.length, body.length);
  assert.match((await ask('/426')).text, /^HTTP\/1\.1 426 Upgrade Required\r\nUpgrade: other\r\n/);
  await eventually(() => house.door.stats().clients === 0 && guest.open() === 0, 'closed');
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

test('an offer of h2c and an upgrade of a request with a body are served as plain requests', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    response.end(`${request.headers.upgrade} ${request.headers['http2-settings']} ${body}`);
  });
  const host = `Host: ${guest.port}-ia.x\r\nConnection: close, Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA\r\n`;
  const offered = await exchangeRaw(house.url, `GET / HTTP/1.1\r\n${host}Upgrade: h2c\r\n\r\n`);
  assert.match(offered.text, /undefined undefined $/);
  const bodied = await exchangeRaw(
    house.url,
    `POST / HTTP/1.1\r\n${host}Upgrade: websocket\r\nContent-Length: 4\r\n\r\nbody`,
  );
  assert.match(bodied.text, /undefined undefined body$/);
});

test('back-pressure holds through an upgraded connection', async () => {
  await using house = await House.open();
  const address = freshAddress();
  let written = 0;
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
        const chunk = Buffer.alloc(64 * 1024);
        const more = () => {
          while (written < 512 * 1024 * 1024) {
            written += chunk.length;
            if (!socket.write(chunk)) return;
          }
        };
        socket.on('drain', more);
        more();
      });
    }),
  );
  house.directory.run('ia', address);
  const socket = await openSocket(house.url);
  socket.write(`GET / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
  await eventually(() => written > 0, 'first write');
  for (let before = -1; before !== written; ) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(written < 64 * 1024 * 1024, `${written} bytes were taken from the server`);
  socket.destroy();
  await eventually(() => house.door.stats().sandboxSockets === 0, 'gone');
});
