import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { TEST_CERTIFICATE } from '../testing/certificate.ts';
import { ask, eventually, to } from '../testing/clients.ts';
import { envdGuest, freshAddress, httpGuest, listenAt, rawGuest } from '../testing/guests.ts';
import { House } from '../testing/house.ts';

/** A thread that listens and then stands still, so that nothing is ever accepted. */
const FROZEN_SERVER = `
  const { createServer } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const server = createServer().listen({ host: workerData.address, port: 0, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
`;

/** A port that nothing listens on, at any loopback address. */
async function closedPort(): Promise<number> {
  const taken = await listenAt(createServer(), '127.0.0.1');
  await taken.close();
  return taken.port;
}

test('a port without a listener answers 502 that names it, within about a second', async () => {
  await using house = await House.open();
  const port = await closedPort();
  const address = freshAddress();
  await house.keep(envdGuest(address, 'host-secret', (_request, response) => void response.end()));
  house.directory.run('ia', address);
  const began = performance.now();
  const reply = await ask(house.url, { headers: to('ia', port) });
  const took = performance.now() - began;
  assert.ok(took > 500 && took < 4_000, `${took} ms`);
  assert.equal(reply.status, 502);
  const { remediation: _, ...body } = reply.json();
  assert.deepEqual(body, {
    sandboxId: 'ia',
    message: 'The sandbox is running but port is not open',
    port,
    code: 502,
    error_code: 'port_not_open',
  });
});

test('when not even envd listens, the port is not open', async () => {
  await using house = await House.open({ retryDelaysMs: [1] });
  house.directory.run('ia', freshAddress());
  assert.equal((await ask(house.url, { headers: to('ia', 8080) })).json().error_code, 'port_not_open');
  assert.equal((await ask(house.url, { headers: to('ia', ENVD_PORT) })).json().error_code, 'port_not_open');
});

test('a server that is just starting is waited for', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const port = await closedPort();
  house.directory.run('ia', address);
  const asked = ask(house.url, { headers: to('ia', port) });
  await new Promise((resolve) => setTimeout(resolve, 250));
  await house.keep(httpGuest(address, (_request, response) => void response.end('here'), port));
  assert.equal((await asked).body.toString(), 'here');
});

test("a port of the guest's loopback is reached through envd, and its connection is kept and counted like any", async () => {
  await using house = await House.open();
  const inner = await house.keep(
    httpGuest('127.0.0.1', (request, response) => {
      response.write(`${request.method} ${request.url} `);
      request.pipe(response);
    }),
  );
  const address = freshAddress();
  const envd = await house.keep(envdGuest(address, 'host-secret', (_request, response) => void response.end()));
  house.directory.run('ia', address);
  for (let i = 0; i < 3; i++) {
    const reply = await ask(`${house.url}/x`, { headers: to('ia', inner.port) });
    assert.equal(reply.body.toString(), 'GET /x ');
  }
  assert.equal(inner.accepted(), 1);
  assert.equal(envd.accepted(), 1);
  const posted = await ask(`${house.url}/y`, { method: 'POST', headers: to('ia', inner.port), body: 'data' });
  assert.equal(posted.body.toString(), 'POST /y data');

  house.directory.run('ib', address, { hostSecret: 'wrong' });
  assert.equal((await ask(house.url, { headers: to('ib', inner.port) })).json().error_code, 'port_not_open');
  house.directory.end('ia');
  await eventually(() => envd.open() === 0 && inner.open() === 0, 'tunnels gone');
});

test('a server that accepts and breaks off gives 502, one that talks nonsense too', async () => {
  await using house = await House.open();
  const address = freshAddress();
  let answer = '';
  const guest = await house.keep(rawGuest(address, (socket) => void socket.once('data', () => socket.end(answer))));
  house.directory.run('ia', address);
  for (const [text, message] of [
    ['', /broke the connection/],
    ['SSH-2.0-OpenSSH\r\n\r\n', /not valid HTTP/],
    ['HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx', /not valid HTTP/],
    ['HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx', /not valid HTTP/],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', /broke the connection/],
    ['HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', /broke the connection/],
    [`HTTP/1.1 200 OK\r\nX: ${'y'.repeat(70_000)}\r\n\r\n`, /not valid HTTP/],
  ] as const) {
    answer = text;
    const reply = await ask(house.url, { headers: to('ia', guest.port) });
    assert.deepEqual([reply.status, reply.json().error_code, reply.json().port], [502, 'upstream_failed', guest.port]);
    assert.match(String(reply.json().message), message);
  }
});

test('a connect without an answer is a 504', async () => {
  await using house = await House.open({ connectTimeoutMs: 200 });
  const address = freshAddress();
  const frozen = new Worker(FROZEN_SERVER, { eval: true, workerData: { address } });
  await house.keep({ close: async () => void (await frozen.terminate()) });
  const [port] = (await once(frozen, 'message')) as [number];
  // The kernel takes connections into the queue until it is full; after that it leaves them without an answer.
  const queued = Array.from({ length: 4 }, () => connect({ host: address, port }).on('error', () => {}));
  await house.keep({ close: () => queued.forEach((socket) => void socket.destroy()) });
  await once(queued[0] ?? frozen, 'connect');
  await new Promise((resolve) => setTimeout(resolve, 50));
  house.directory.run('ia', address);
  const reply = await ask(house.url, { headers: to('ia', port) });
  assert.deepEqual([reply.status, reply.json().error_code], [504, 'upstream_timeout']);
});

test('a TLS greeting or a tunnel without an answer is a 504 too', async () => {
  await using house = await House.open({ connectTimeoutMs: 200 });
  const address = freshAddress();
  const mute = await house.keep(rawGuest(address, (socket) => void socket.resume().once('end', () => socket.end())));
  house.directory.run('ia', address, { httpsPorts: [mute.port] });
  assert.equal((await ask(house.url, { headers: to('ia', mute.port) })).status, 504);
  await house.keep(rawGuest(address, () => {}, ENVD_PORT));
  assert.equal((await ask(house.url, { headers: to('ia', await closedPort()) })).status, 504);
  await eventually(() => mute.open() === 0, 'connection given up');
});

test('a port declared as TLS is spoken to with TLS, whatever its certificate', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const server = createTlsServer(TEST_CERTIFICATE, (request, response) => {
    response.end(`${request.headers['x-forwarded-proto']} ${request.headers.host}`);
  });
  const guest = await house.keep(listenAt(server, address));
  house.directory.run('ia', address, { httpsPorts: [guest.port] });
  for (let i = 0; i < 2; i++) {
    const reply = await ask(house.url, { headers: { Host: `${guest.port}-ia.app.test` } });
    assert.equal(reply.body.toString(), `http ${guest.port}-ia.app.test`);
  }
  assert.equal(guest.accepted(), 1, 'kept like any other connection');
  house.directory.run('ia', address);
  assert.equal((await ask(house.url, { headers: to('ia', guest.port) })).status, 502);
});

test('a sandbox has a limit of connections under way, above it 429 that can be repeated', async () => {
  await using house = await House.open({ maxConnectionsPerSandbox: 2 });
  const waiting: (() => void)[] = [];
  const guest = await house.serve('ia', (_request, response) => void waiting.push(() => response.end('ok')));
  const first = [0, 1].map(() => ask(house.url, { headers: to('ia', guest.port) }));
  await eventually(() => waiting.length === 2, 'both at the server');
  const refused = await ask(house.url, { headers: to('ia', guest.port) });
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '1']);
  for (const answer of waiting) answer();
  for (const reply of await Promise.all(first)) assert.equal(reply.status, 200);
  const later = ask(house.url, { headers: to('ia', guest.port) });
  await eventually(() => waiting.length === 3, 'room again');
  waiting[2]?.();
  assert.equal((await later).status, 200);
});
