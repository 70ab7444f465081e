import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { ask, eventually, exchangeRaw, openSocket, readToEnd, to } from '../testing/clients.ts';
import { freshAddress, rawGuest } from '../testing/guests.ts';
import { House } from '../testing/house.ts';

const sha = (data: Buffer) => createHash('sha256').update(data).digest('hex');

/** A sandbox whose server sees each request's head as text and answers with bytes. */
async function rawSandbox(house: House, onHead: (socket: Socket, head: string) => void): Promise<number> {
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      let head = '';
      socket.on('data', (chunk) => {
        head += chunk.toString('latin1');
        if (!head.includes('\r\n\r\n')) return;
        const complete = head;
        head = '';
        onHead(socket, complete);
      });
    }),
  );
  house.directory.run('ia', address);
  return guest.port;
}

const get = (port: number, version = '1.1', method = 'GET') =>
  `${method} / HTTP/${version}\r\nHost: x\r\nConnection: close\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: ${port}\r\n\r\n`;

test('bodies arrive whole by length, in chunks and delimited by the end of the connection', async () => {
  await using house = await House.open();
  const data = randomBytes(8 * 1024 * 1024);
  const guest = await house.serve('ia', (request, response) => {
    if (request.url === '/length') response.writeHead(200, { 'Content-Length': data.length }).end(data);
    else if (request.url === '/chunked') {
      for (let at = 0; at < data.length; at += 100_000) response.write(data.subarray(at, at + 100_000));
      response.end();
    } else {
      response.socket?.write('HTTP/1.0 200 OK\r\nContent-Type: x/y\r\n\r\n');
      response.socket?.end(data);
    }
  });
  for (const path of ['/length', '/chunked', '/close']) {
    const reply = await ask(house.url + path, { headers: to('ia', guest.port) });
    assert.equal(reply.status, 200, path);
    assert.equal(sha(reply.body), sha(data), path);
    assert.equal(reply.headers['content-length'], path === '/length' ? String(data.length) : undefined);
  }
});

test('uploads arrive whole, by length and in chunks, with any method', async () => {
  await using house = await House.open();
  const data = randomBytes(3 * 1024 * 1024);
  const guest = await house.serve('ia', async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method } = request;
    const framing = request.headers['transfer-encoding'] ?? request.headers['content-length'];
    response.end(JSON.stringify({ method, framing, sha: sha(Buffer.concat(chunks)) }));
  });
  for (const method of ['POST', 'PUT', 'DELETE', 'GET', 'PROPFIND']) {
    const headers = { ...to('ia', guest.port), 'Content-Length': String(data.length) };
    const byLength = await ask(house.url, { method, headers, body: data });
    assert.deepEqual(byLength.json(), { method, framing: String(data.length), sha: sha(data) });
    const inChunks = await ask(house.url, {
      method,
      headers: { ...to('ia', guest.port), 'Transfer-Encoding': 'chunked' },
      body: data,
    });
    assert.deepEqual(inChunks.json(), { method, framing: 'chunked', sha: sha(data) });
  }
  const empty = await ask(house.url, { method: 'POST', headers: { ...to('ia', guest.port), 'Content-Length': '0' } });
  assert.equal(empty.json().framing, '0');
});

test('an answer that ends short is a broken connection for the client, never a clean short one', async () => {
  await using house = await House.open();
  const answers: Record<string, string> = {
    length: 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort',
    chunked: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n',
  };
  let answer = '';
  const port = await rawSandbox(house, (socket) => void socket.end(answer));
  for (const [name, text] of Object.entries(answers)) {
    answer = text;
    for (const version of ['1.1', '1.0']) {
      const reply = await exchangeRaw(house.url, get(port, version));
      assert.match(reply.text, /^HTTP\/1\.1 200 OK\r\n/, name);
      assert.ok(!reply.text.endsWith('0\r\n\r\n'), 'no final chunk');
      assert.equal(reply.end, 'ECONNRESET', `${name} to HTTP/${version}`);
    }
  }
});

test('a server that is cut off within a body without length breaks the client too', async () => {
  await using house = await House.open();
  const port = await rawSandbox(house, (socket) => {
    socket.write('HTTP/1.0 200 OK\r\n\r\npart', () => setTimeout(() => socket.resetAndDestroy(), 20));
  });
  for (const version of ['1.1', '1.0']) {
    assert.equal((await exchangeRaw(house.url, get(port, version))).end, 'ECONNRESET', version);
  }
});

test('HEAD, 204 and 304 have no body, and their lengths pass', async () => {
  await using house = await House.open();
  let answer = '';
  const port = await rawSandbox(house, (socket) => void socket.write(answer));
  const headers = to('ia', port);
  answer = 'HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n';
  assert.equal((await ask(house.url, { method: 'HEAD', headers })).headers['content-length'], '1234');
  answer = 'HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n';
  const none = await ask(house.url, { headers });
  assert.deepEqual([none.status, none.headers['x-a'], none.headers['transfer-encoding']], [204, '1', undefined]);
  answer = 'HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: "x"\r\n\r\n';
  const same = await ask(house.url, { headers });
  assert.deepEqual([same.status, same.headers['content-length'], same.headers.etag], [304, '77', '"x"']);
  // All of them on one connection: none of them left anything behind.
  answer = 'HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n\r\nok';
  assert.equal((await ask(house.url, { headers })).body.toString(), 'ok');
});

test('header case, duplicates, status text and bytes outside ASCII pass as they are', async () => {
  await using house = await House.open();
  const port = await rawSandbox(house, (socket) => {
    const lines = ['HTTP/1.1 299 Odd Words', 'X-MiXed: 1', 'Set-Cookie: a=1', 'set-cookie: b=2', 'X-Name: caf\xe9'];
    socket.write(`${lines.join('\r\n')}\r\nConnection: X-Drop\r\nX-Drop: 1\r\nContent-Length: 0\r\n\r\n`, 'latin1');
  });
  const { text } = await exchangeRaw(house.url, get(port));
  assert.ok(text.startsWith('HTTP/1.1 299 Odd Words\r\nX-MiXed: 1\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n'), text);
  assert.ok(text.includes('X-Name: caf\xe9\r\n'));
  assert.ok(!/x-drop/i.test(text));
  assert.ok(!/^date:/im.test(text), 'nothing is made up');
});

test('trailers pass in both directions', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { Trailer: 'X-Sum' });
      response.write('body');
      response.addTrailers({ 'X-Sum': `${request.headers.te} ${request.trailers['x-in']}` });
      response.end();
    });
  });
  const outgoing = send(house.url, {
    agent: false,
    method: 'POST',
    headers: { ...to('ia', guest.port), 'Transfer-Encoding': 'chunked', Trailer: 'X-In', TE: 'trailers' },
  });
  outgoing.write('x');
  outgoing.addTrailers({ 'X-In': 'in' });
  outgoing.end();
  const [answer] = await once(outgoing, 'response');
  assert.equal(answer.headers.trailer, 'X-Sum');
  await once(answer.resume(), 'end');
  assert.equal(answer.trailers['x-sum'], 'trailers in');
});

test('the first bytes of a stream come at once, not with the next ones', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    if (request.url === '/headers') response.flushHeaders();
    else response.write('data: 1\n\n');
  });
  for (const path of ['/headers', '/data']) {
    const outgoing = send(house.url + path, { agent: false, headers: to('ia', guest.port) }).end();
    const [answer] = await once(outgoing, 'response', { signal: AbortSignal.timeout(2_000) });
    if (path === '/data') {
      const [chunk] = await once(answer, 'data', { signal: AbortSignal.timeout(2_000) });
      assert.equal(String(chunk), 'data: 1\n\n');
    }
    outgoing.on('error', () => {}).destroy();
  }
});

test('the headers of an upload reach the server before any of its body does', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    response.writeHead(200).write('seen ');
    request.pipe(response);
  });
  const headers = { ...to('ia', guest.port), 'Transfer-Encoding': 'chunked' };
  const outgoing = send(house.url, { agent: false, method: 'POST', headers });
  outgoing.flushHeaders();
  const [answer] = await once(outgoing, 'response', { signal: AbortSignal.timeout(2_000) });
  outgoing.end('echo');
  let text = '';
  for await (const chunk of answer) text += chunk;
  assert.equal(text, 'seen echo');
});

test('the server never sees the end of the connection before its answer has ended', async () => {
  await using house = await House.open();
  const events: string[] = [];
  const port = await rawSandbox(house, (socket) => {
    socket.once('end', () => events.push('fin'));
    setTimeout(() => {
      events.push('answered');
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok');
    }, 100);
  });
  assert.equal((await ask(house.url, { headers: { ...to('ia', port), Connection: 'close' } })).body.toString(), 'ok');
  const posted = await ask(house.url, {
    method: 'POST',
    headers: { ...to('ia', port), Connection: 'close' },
    body: 'x',
  });
  assert.equal(posted.body.toString(), 'ok');
  await eventually(() => events.length === 4, 'both connections closed');
  assert.deepEqual(events, ['answered', 'fin', 'answered', 'fin']);
});

test('an answer before the end of the upload arrives, and the upload is dropped', async () => {
  await using house = await House.open();
  const port = await rawSandbox(house, (socket) => {
    socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge');
  });
  const data = Buffer.alloc(4 * 1024 * 1024);
  const headers = { ...to('ia', port), 'Content-Length': String(data.length) };
  const reply = await ask(house.url, { method: 'POST', headers, body: data });
  assert.deepEqual([reply.status, reply.body.toString()], [413, 'large']);
  await eventually(() => house.door.stats().sandboxSockets === 0, 'upstream connection gone');
});

test('a client that is slow holds the server back instead of filling memory', async () => {
  await using house = await House.open();
  let written = 0;
  const guest = await house.serve('ia', (_request, response) => {
    const chunk = Buffer.alloc(64 * 1024);
    const more = () => {
      while (written < 512 * 1024 * 1024) {
        written += chunk.length;
        if (!response.write(chunk)) return;
      }
    };
    response.on('drain', more);
    more();
  });
  const socket = await openSocket(house.url);
  socket.pause();
  socket.write(get(guest.port));
  await eventually(() => written > 0, 'first write');
  let before = -1;
  while (before !== written) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(written < 64 * 1024 * 1024, `${written} bytes were taken from the server`);
  socket.destroy();
  await eventually(() => house.door.stats().sandboxSockets === 0, 'upstream connection gone');
});

test('a server that reads slowly holds the client back', async () => {
  await using house = await House.open({ stalledMs: 1_000 });
  const guest = await house.serve('ia', () => {});
  const socket = await openSocket(house.url);
  const head = get(guest.port, '1.1', 'POST').replace('\r\n\r\n', '\r\nContent-Length: 536870912\r\n\r\n');
  socket.write(head);
  const chunk = Buffer.alloc(64 * 1024);
  const more = () => {
    while (socket.bytesWritten < 512 * 1024 * 1024 && socket.write(chunk));
  };
  socket.on('drain', more);
  socket.on('error', () => {});
  more();
  let before = -1;
  while (before !== socket.bytesWritten - socket.writableLength) {
    before = socket.bytesWritten - socket.writableLength;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(before < 64 * 1024 * 1024, `${before} bytes were taken from the client`);
  socket.destroy();
  await eventually(() => house.door.stats().sandboxSockets === 0, 'upstream connection gone');
});

test('pipelined requests are answered in order', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    setTimeout(() => response.end(request.url), request.url === '/1' ? 50 : 0);
  });
  const one = (path: string) => get(guest.port).replace('GET /', `GET ${path}`).replace('Connection: close\r\n', '');
  const socket = await openSocket(house.url);
  socket.write(one('/1') + one('/2') + get(guest.port).replace('GET /', 'GET /3'));
  const { text } = await readToEnd(socket);
  assert.deepEqual(text.match(/(?<=\r\n\r\n)\/[123]/g), ['/1', '/2', '/3']);
});
