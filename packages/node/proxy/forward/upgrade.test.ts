import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { eventually, exchangeRaw, openSocket, readToEnd } from '../testing/clients.ts';
import { freshAddress, listenAt, rawGuest } from '../testing/guests.ts';
import { House } from '../testing/house.ts';

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
