import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { ask, eventually, exchangeRaw, to } from '../testing/clients.ts';
import { House, rawSandbox } from '../testing/house.ts';

const sha = (data: Buffer) => createHash('sha256').update(data).digest('hex');

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
