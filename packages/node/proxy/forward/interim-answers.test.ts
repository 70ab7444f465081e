import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as send } from 'node:http';
import { test } from 'node:test';
import { exchangeRaw, to } from '../testing/clients.ts';
import { freshAddress, rawGuest } from '../testing/guests.ts';
import { House } from '../testing/house.ts';

test('early hints and other interim answers arrive before the answer, as they are', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (_request, response) => {
    response.writeProcessing();
    response.writeEarlyHints({ link: '</a.css>; rel=preload', 'x-b': '1' }, () => response.end('ok'));
  });
  const head = `Host: x\r\nConnection: close\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: ${guest.port}\r\n\r\n`;
  const { text } = await exchangeRaw(house.url, `GET / HTTP/1.1\r\n${head}`);
  assert.match(
    text,
    /^HTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 103 Early Hints\r\nLink: .*rel=preload\r\nx-b: 1\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
  );
  const old = await exchangeRaw(house.url, `GET / HTTP/1.0\r\n${head}`);
  assert.match(old.text, /^HTTP\/1\.1 200 OK\r\n/, 'HTTP/1.0 knows no interim answers');
});

test('a flood of interim answers is cut down, and the answer still comes', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      socket.once('data', () => {
        const flood = 'HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n'.repeat(500);
        socket.end(`${flood}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`);
      });
    }),
  );
  house.directory.run('ia', address);
  const head = `Host: x\r\nConnection: close\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: ${guest.port}\r\n\r\n`;
  const { text } = await exchangeRaw(house.url, `GET / HTTP/1.1\r\n${head}`);
  assert.equal(text.match(/ 103 /g)?.length, 16);
  assert.match(text, /HTTP\/1\.1 200 OK\r\n[\s\S]*ok$/);
});

test('with Expect: 100-continue the server in the sandbox decides, not the proxy', async () => {
  await using house = await House.open();
  const order: string[] = [];
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      socket.once('data', (chunk) => {
        order.push(/^expect: 100-continue\r$/im.test(chunk.toString()) ? 'asked' : 'not asked');
        setTimeout(() => {
          order.push('granted');
          socket.write('HTTP/1.1 100 Continue\r\n\r\n');
          socket.once('data', (body) => {
            socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
          });
        }, 50);
      });
    }),
  );
  house.directory.run('ia', address);
  const headers = { ...to('ia', guest.port), Expect: '100-continue', 'Content-Length': '4' };
  const outgoing = send(house.url, { agent: false, method: 'POST', headers });
  outgoing.once('continue', () => {
    order.push('continued');
    outgoing.end('body');
  });
  const [answer] = await once(outgoing, 'response');
  let text = '';
  for await (const chunk of answer) text += chunk;
  assert.equal(text, 'body');
  assert.deepEqual(order, ['asked', 'granted', 'continued']);
});

test('an expectation that the server refuses costs no body', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno'));
    }),
  );
  house.directory.run('ia', address);
  const head = `POST / HTTP/1.1\r\nHost: x\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: ${guest.port}\r\n`;
  const reply = await exchangeRaw(house.url, `${head}Expect: 100-continue\r\nContent-Length: 99\r\n\r\n`);
  assert.match(reply.text, /^HTTP\/1\.1 401 Unauthorized\r\n[\s\S]*no$/);
  assert.equal(reply.end, 'fin', 'the connection is closed, since the body may or may not follow');
});
