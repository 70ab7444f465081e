import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as send } from 'node:http';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { ask, eventually, openSocket, type RawReply, readToEnd, to } from '../testing/clients.ts';
import { freshAddress, httpGuest, rawGuest } from '../testing/guests.ts';
import { House } from '../testing/house.ts';

test('the next sandbox at the same address never answers for the one before, nor the other way round', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const client = new Agent({ keepAlive: true });
  await house.keep({ close: () => client.destroy() });
  let port = 0;
  for (let round = 0; round < 8; round++) {
    for (const name of [`a${round}`, `b${round}`]) {
      const guest = await httpGuest(address, (_request, response) => void response.end(name), port);
      port = guest.port;
      house.directory.run('ia', address);
      for (let i = 0; i < 3; i++) {
        const reply = await ask(house.url, { headers: to('ia', port), agent: client });
        assert.deepEqual([reply.status, reply.body.toString()], [200, name]);
      }
      assert.equal(guest.accepted(), 1, 'within one run the connection is kept');
      house.directory.end('ia');
      assert.equal((await ask(house.url, { headers: to('ia', port), agent: client })).status, 502);
      await eventually(() => guest.open() === 0, 'its connections are gone');
      await guest.close();
    }
  }
  assert.equal(house.door.stats().sandboxSockets, 0);
});

test('a connection is not reused across an end even when the server lives on at the same address', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => void response.end(String(request.socket.remotePort)));
  const portOf = async () => (await ask(house.url, { headers: to('ia', guest.port) })).body.toString();
  const before = await portOf();
  assert.equal(await portOf(), before);
  house.directory.end('ia');
  house.directory.run('ia', guest.address);
  assert.notEqual(await portOf(), before);
  // Nor between two sandboxes that are at one address at a time.
  house.directory.run('ib', guest.address);
  const other = (await ask(house.url, { headers: to('ib', guest.port) })).body.toString();
  assert.notEqual(other, await portOf());
});

test('when an incarnation ends, streams break at once without a clean end, and what waits for an answer gets 502', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    if (request.url === '/wait') return;
    if (request.url === '/length') response.setHeader('Content-Length', 1_000_000);
    response.write('begin');
  });
  const replies: Promise<RawReply>[] = [];
  for (const line of ['/ HTTP/1.1', '/ HTTP/1.0', '/length HTTP/1.1']) {
    const socket = await openSocket(house.url);
    socket.write(`GET ${line}\r\nHost: ${guest.port}-ia.x\r\n\r\n`);
    replies.push(readToEnd(socket));
    await once(socket, 'data');
  }
  const waiting = ask(`${house.url}/wait`, { headers: to('ia', guest.port) });
  await eventually(() => house.door.stats().sandboxRequests === 4, 'all under way');
  const began = performance.now();
  house.directory.end('ia', 'killed');
  for (const reply of await Promise.all(replies)) {
    assert.match(reply.text, /begin/);
    assert.ok(!reply.text.endsWith('0\r\n\r\n'));
    assert.equal(reply.end, 'ECONNRESET');
  }
  const refused = await waiting;
  assert.deepEqual([refused.status, refused.json().error_code], [502, 'sandbox_gone']);
  assert.ok(performance.now() - began < 3_000);
  assert.equal((await ask(house.url, { headers: to('ia', guest.port) })).status, 502);
  await eventually(() => guest.open() === 0, 'connections at the server gone');
  assert.deepEqual(house.door.stats().sandboxSockets, 0);
});

test('an ended incarnation serves no more, even if the directory still names it', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (_request, response) => void response.end('late'));
  const found = house.directory.lookup('ia');
  assert.equal(found.kind, 'running');
  if (found.kind === 'running') house.directory.announceEnd(found.target.incarnation);
  const reply = await ask(house.url, { headers: to('ia', guest.port) });
  assert.deepEqual([reply.status, reply.json().error_code], [502, 'sandbox_gone']);
  assert.equal(guest.accepted(), 0);
});

test('an end while a port is waited for is answered at once', async () => {
  await using house = await House.open({ retryDelaysMs: [30_000] });
  house.directory.run('ia', freshAddress());
  const reply = ask(house.url, { headers: to('ia', 8080) });
  await eventually(() => house.door.stats().sandboxRequests === 1, 'under way');
  house.directory.end('ia');
  const { error_code, message, remediation } = (await reply).json();
  assert.equal(error_code, 'sandbox_gone');
  assert.match(`${message}; ${remediation}`, /paused or ended before it had answered.*repeat the request/);
});

test('kept connections are few and go after a while', async () => {
  await using house = await House.open({ idleMs: 300, maxIdlePerSandbox: 2 });
  const waiting: (() => void)[] = [];
  const guest = await house.serve('ia', (request, response) => {
    waiting.push(() => response.writeHead(200, { 'Keep-Alive': 'timeout=60' }).end(request.url));
  });
  const replies = Array.from({ length: 5 }, () => ask(house.url, { headers: to('ia', guest.port) }));
  await eventually(() => waiting.length === 5, 'five at once');
  for (const answer of waiting) answer();
  await Promise.all(replies);
  await eventually(() => house.door.stats().sandboxSockets === 2, 'two kept');
  await eventually(() => house.door.stats().sandboxSockets === 0, 'none kept');
});

test('a server that announces a shorter time than ours is believed', async () => {
  await using house = await House.open({ idleMs: 60_000 });
  const guest = await house.serve('ia', (request, response) => {
    response.writeHead(200, { 'Keep-Alive': `timeout=${request.url?.slice(1)}` }).end();
  });
  await ask(`${house.url}/1`, { headers: to('ia', guest.port) });
  await eventually(() => house.door.stats().sandboxSockets === 0, 'not kept at all');
  await ask(`${house.url}/2`, { headers: to('ia', guest.port) });
  assert.equal(house.door.stats().sandboxSockets, 1);
  await eventually(() => house.door.stats().sandboxSockets === 0, 'kept for a second');
});

test('an answer may take longer than unused connections are kept', async () => {
  await using house = await House.open({ idleMs: 100 });
  const guest = await house.serve('ia', (request, response) => {
    if (request.url === '/stream') response.write('x');
    setTimeout(() => response.end('late'), 400);
  });
  for (const path of ['/', '/', '/stream', '/stream']) {
    assert.match((await ask(house.url + path, { headers: to('ia', guest.port) })).body.toString(), /late$/);
  }
  assert.equal(guest.accepted(), 1);
});

test('a kept connection that the server has closed just then costs the client nothing if the request can be repeated', async () => {
  await using house = await House.open();
  const address = freshAddress();
  let requests = 0;
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      let served = 0;
      socket.on('data', () => {
        requests++;
        // The second request on a connection finds it closed.
        if (++served === 2) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
    }),
  );
  house.directory.run('ia', address);
  const headers = to('ia', guest.port);
  assert.equal((await ask(house.url, { headers })).status, 200);
  assert.equal((await ask(house.url, { headers })).status, 200);
  assert.deepEqual([requests, guest.accepted()], [3, 2]);
  // A request with a body goes over a connection of its own, and is never sent twice.
  assert.equal((await ask(house.url, { headers })).status, 200);
  assert.equal((await ask(house.url, { method: 'POST', headers, body: 'x' })).status, 200);
  assert.deepEqual([requests, guest.accepted()], [5, 4]);
});

test('a server that breaks every connection is asked once more at most', async () => {
  await using house = await House.open();
  const address = freshAddress();
  let first = true;
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      socket.on('data', () => {
        if (first) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        else socket.resetAndDestroy();
        first = false;
      });
    }),
  );
  house.directory.run('ia', address);
  const headers = to('ia', guest.port);
  assert.equal((await ask(house.url, { headers })).status, 200);
  assert.equal((await ask(house.url, { headers })).json().error_code, 'upstream_failed');
  assert.equal(guest.accepted(), 2);
});

test('a client that goes away takes its connection to the server with it', async () => {
  await using house = await House.open();
  const seen: Socket[] = [];
  const guest = await house.serve('ia', (request, response) => {
    seen.push(request.socket);
    if (request.url === '/stream') response.write('x');
  });
  for (const path of ['/wait', '/stream']) {
    for (const method of ['GET', 'POST']) {
      const headers = { ...to('ia', guest.port), ...(method === 'POST' ? { 'Content-Length': 100 } : {}) };
      const outgoing = send(house.url + path, { agent: false, method, headers });
      outgoing.on('error', () => {});
      if (method === 'POST') outgoing.write('part');
      else outgoing.end();
      await eventually(() => seen.length === 1, `${method} ${path} at the server`);
      outgoing.destroy();
      await eventually(() => guest.open() === 0 && house.door.stats().sandboxRequests === 0, `${method} ${path} ended`);
      seen.length = 0;
    }
  }
});

test('pipelined requests of a client that goes away are all let go', async () => {
  await using house = await House.open();
  let requests = 0;
  const guest = await house.serve('ia', () => void requests++);
  const socket = await openSocket(house.url);
  socket.write(`GET / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\n\r\n`.repeat(20));
  await eventually(() => requests === 20, 'all at the server');
  socket.destroy();
  await eventually(() => guest.open() === 0 && house.door.stats().sandboxRequests === 0, 'all let go');
});
