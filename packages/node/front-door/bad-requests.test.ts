import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as send } from 'node:http';
import { test } from 'node:test';
import { ask, eventually, exchangeRaw, openSocket, readToEnd, to } from '../proxy/testing/clients.ts';
import { House } from '../proxy/testing/house.ts';

/** The error_code of a raw answer, after its status was checked. */
function errorCode(text: string, status: number): unknown {
  assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} [^\\r\\n]+\\r\\n`));
  assert.match(text, /\r\nContent-Type: application\/json\r\n/);
  const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>;
  assert.equal(body.code, status);
  assert.equal(typeof body.message, 'string');
  return body.error_code;
}

test('a request that does not say clearly where it goes is a 400 in JSON', async () => {
  await using house = await House.open();
  const end = 'Connection: close\r\n\r\n';
  for (const lines of [
    'Host: 0-ia.x\r\n',
    'Host: 80-a-b-c.x\r\n',
    'Host: x\r\nHost: y\r\n',
    '',
    'Host: x\r\ne2b-sandbox-id: ia\r\n',
    'Host: x\r\ne2b-sandbox-port: 80\r\n',
    'Host: x\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: 65536\r\n',
    'Host: x\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: 08x\r\n',
    'Host: x\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-id: ib\r\ne2b-sandbox-port: 80\r\n',
  ]) {
    const { text } = await exchangeRaw(house.url, `GET / HTTP/1.1\r\n${lines}${end}`);
    assert.equal(errorCode(text, 400), 'bad_route', lines);
  }
  assert.equal(
    errorCode((await exchangeRaw(house.url, `GET /proxy HTTP/1.1\r\nHost: x\r\n${end}`)).text, 400),
    'bad_route',
  );
});

test('what is not HTTP is answered in JSON, and the server lives on', async () => {
  await using house = await House.open();
  const cases: [string, number, string][] = [
    ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'invalid_request'],
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_request'],
    ['GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400, 'invalid_request'],
    ['POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400, 'invalid_request'],
    ['GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n', 400, 'invalid_request'],
    ['GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n', 400, 'invalid_request'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(80_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n', 405, 'method_not_allowed'],
    [
      'CONNECT x HTTP/1.1\r\nHost: 49983-ia.x\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: 49983\r\n\r\n',
      405,
      'method_not_allowed',
    ],
  ];
  for (const [text, status, code] of cases) {
    assert.equal(errorCode((await exchangeRaw(house.url, text)).text, status), code, text.slice(0, 40));
  }
  assert.equal((await ask(house.url)).body.toString(), 'control');
});

test('a body that breaks the rules of its framing is a 400, and what follows it is no request', async () => {
  let requests = 0;
  await using house = await House.open({}, (request, response) => {
    requests++;
    request.resume().once('end', () => response.end('read'));
  });
  const bad = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n';
  assert.equal(errorCode((await exchangeRaw(house.url, bad)).text, 400), 'invalid_request');
  assert.equal(requests, 1);
  const guest = await house.serve('ia', (request) => void request.resume());
  const { text } = await exchangeRaw(house.url, bad.replace('Host: x', `Host: ${guest.port}-ia.x`));
  assert.equal(errorCode(text, 400), 'invalid_request');
  await eventually(() => guest.open() === 0, 'upstream gone');
});

test('header lines that come after their time are no request any more', async () => {
  let requests = 0;
  await using house = await House.open({ headersTimeoutMs: 200 }, (_request, response) => {
    requests++;
    response.end();
  });
  const socket = await openSocket(house.url);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n');
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1\.1 408 /);
  socket.write('\r\n');
  await readToEnd(socket);
  assert.equal(requests, 0);
});

test('only chunked is a transfer coding, on the way to a sandbox', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (_request, response) => void response.end());
  const head = `POST / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\nConnection: close\r\n`;
  const { text } = await exchangeRaw(house.url, `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`);
  assert.equal(errorCode(text, 400), 'invalid_request');
  assert.equal(guest.accepted(), 0);
});

test('slow header lines and a trickling control body are answered with 408 and cut', async () => {
  await using house = await House.open(
    { headersTimeoutMs: 200, controlBodyTimeoutMs: 300 },
    async (request, response) => {
      for await (const _ of request);
      response.end('read');
    },
  );
  assert.equal(
    errorCode((await exchangeRaw(house.url, 'GET / HTTP/1.1\r\nHost: x\r\nX: ')).text, 408),
    'request_timeout',
  );

  const slow = await openSocket(house.url);
  slow.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n');
  const trickle = setInterval(() => slow.write('x'), 20);
  try {
    assert.equal(errorCode((await readToEnd(slow)).text, 408), 'request_timeout');
  } finally {
    clearInterval(trickle);
  }
});

test('a control body that comes at a fair rate, and any upload into a sandbox, may take longer', async () => {
  await using house = await House.open({ headersTimeoutMs: 500, controlBodyTimeoutMs: 400 }, (request, response) => {
    request.pipe(response);
  });
  const guest = await house.serve('ia', (request, response) => void request.pipe(response));
  for (const [headers, size] of [
    [{}, 4_000],
    [to('ia', guest.port), 1],
  ] as const) {
    const outgoing = send(house.url, { agent: false, method: 'POST', headers });
    const answered = once(outgoing, 'response');
    for (let i = 0; i < 12; i++) {
      outgoing.write('x'.repeat(size));
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    outgoing.end();
    const [answer] = await answered;
    let length = 0;
    for await (const chunk of answer) length += chunk.length;
    assert.equal(length, 12 * size);
  }
});

test('Expect: 100-continue of a control request is granted, any other expectation refused', async () => {
  await using house = await House.open({}, async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    response.end(body);
  });
  const outgoing = send(house.url, { agent: false, method: 'POST', headers: { Expect: '100-continue' } });
  outgoing.flushHeaders();
  await once(outgoing, 'continue');
  outgoing.end('body');
  const [answer] = await once(outgoing, 'response');
  assert.equal(String((await once(answer, 'data'))[0]), 'body');
  const odd = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: wonders\r\n\r\n';
  assert.equal(errorCode((await exchangeRaw(house.url, odd)).text, 400), 'invalid_request');
});

test('a control handler that throws gives a 500 without its secrets', async () => {
  await using house = await House.open({}, () => {
    throw new Error('secret detail');
  });
  const reply = await ask(house.url);
  assert.deepEqual([reply.status, reply.json().error_code], [500, 'internal']);
  assert.ok(!reply.body.toString().includes('secret'));
});
