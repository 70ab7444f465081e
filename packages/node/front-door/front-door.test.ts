import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { ask, exchangeRaw, openSocket, readToEnd, to } from '../proxy/testing/clients.ts';
import { House } from '../proxy/testing/house.ts';

test('what names no sandbox goes to the daemon, with the path of an absolute target', async () => {
  const paths: string[] = [];
  await using house = await House.open({}, (request, response) => {
    paths.push(request.url ?? '');
    response.end('control');
  });
  assert.equal((await ask(`${house.url}/sandboxes?x`)).body.toString(), 'control');
  const absolute = `GET http://api.test/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  assert.match((await exchangeRaw(house.url, absolute)).text, /control$/);
  assert.match((await exchangeRaw(house.url, 'OPTIONS * HTTP/1.0\r\n\r\n')).text, /control$/);
  assert.deepEqual(paths, ['/sandboxes?x', '/health', '*']);
});

test('with routing headers even the paths of the daemon go to the sandbox', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => void response.end(`guest ${request.url}`));
  for (const path of ['/health', '/metrics', '/sandboxes']) {
    const reply = await ask(house.url + path, { headers: to('ia', guest.port) });
    assert.equal(reply.body.toString(), `guest ${path}`);
    assert.equal((await ask(house.url + path)).body.toString(), 'control');
  }
});

test('a client keeps its connection over requests to the daemon and to sandboxes', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (_request, response) => void response.end('guest'));
  const socket = await openSocket(house.url);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  socket.write(`GET / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\n\r\n`);
  await once(socket, 'data');
  socket.write(`GET / HTTP/1.1\r\nHost: 80-inone.x\r\n\r\n`);
  await once(socket, 'data');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.match((await readToEnd(socket)).text, /control$/);
});
