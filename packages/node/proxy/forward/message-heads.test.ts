import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as send } from 'node:http';
import { test } from 'node:test';
import { ask, exchangeRaw, openSocket, readToEnd, to } from '../testing/clients.ts';
import { House, rawSandbox } from '../testing/house.ts';

const get = (port: number, version = '1.1', method = 'GET') =>
  `${method} / HTTP/${version}\r\nHost: x\r\nConnection: close\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: ${port}\r\n\r\n`;

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
