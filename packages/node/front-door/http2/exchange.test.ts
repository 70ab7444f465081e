import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';
import { DOMAIN } from '../../certificates/testing/certificate-folder.ts';
import { Http2Client, http2ToGuest, openTlsHouse, readReply } from '../testing/tls-clients.ts';

test('heads pass: one Cookie, repeated fields, TE, no fields that are about a connection', async () => {
  await using tls = await openTlsHouse();
  let seen: string[] = [];
  using client = await http2ToGuest(tls, (request, response) => {
    seen = request.rawHeaders;
    response.writeHead(201, [
      ...['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Latin', 'caf\u00e9', 'X-Own', '1', 'X-Own', '2'],
      ...['Date', 'x-date'],
      ...['Keep-Alive', 'timeout=9', 'Proxy-Connection', 'x', 'Content-Type', 'text/plain'],
    ]);
    response.end('body');
  });
  const reply = await client.ask({
    ...{ ':path': '/a?b=%20', cookie: ['x=1', 'y=2'], te: 'trailers', 'x-two': ['1', '2'], 'x-latin': 'caf\u00e9' },
  });
  assert.equal(reply.status, 201);
  assert.deepEqual(reply.headers['set-cookie'], ['a=1', 'b=2']);
  assert.equal(reply.headers['x-own'], '1, 2');
  assert.equal(reply.headers.date, 'x-date');
  assert.equal(reply.headers['x-latin'], 'caf\u00e9');
  for (const gone of ['keep-alive', 'proxy-connection', 'connection', 'transfer-encoding']) {
    assert.equal(reply.headers[gone], undefined, gone);
  }
  const values = (wanted: string) => seen.filter((_, i) => seen[i - 1]?.toLowerCase() === wanted && i % 2 === 1);
  assert.deepEqual(values('cookie'), ['x=1; y=2']);
  assert.deepEqual(values('te'), ['trailers']);
  assert.deepEqual(values('x-two'), ['1', '2']);
  assert.deepEqual(values('x-latin'), ['caf\u00e9']);
  assert.deepEqual(values('host').length, 1);
  assert.equal(seen.filter((name, i) => i % 2 === 0 && name.startsWith(':')).length, 0);
});

test('bodies and trailers pass both ways, with many streams on one connection', async () => {
  await using tls = await openTlsHouse();
  using client = await http2ToGuest(tls, (request, response) => {
    response.setHeader('Trailer', 'x-sum');
    const hash = createHash('sha256');
    request.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      if (!response.write(chunk)) request.pause();
    });
    response.on('drain', () => request.resume());
    request.on('end', () => {
      response.addTrailers({ 'x-sum': hash.digest('hex'), 'x-echo': String(request.trailers['x-end']) });
      response.end();
    });
  });
  const body = randomBytes(3 * 1024 * 1024);
  const sum = createHash('sha256').update(body).digest('hex');
  await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      const stream = client.start({ ':method': 'POST' }, { waitForTrailers: true });
      stream.once('wantTrailers', () => stream.sendTrailers({ 'x-end': `end-${i}` }));
      const reply = readReply(stream);
      stream.end(body);
      const { body: echoed, trailers } = await reply;
      assert.ok(echoed.equals(body));
      assert.deepEqual([trailers['x-sum'], trailers['x-echo']], [sum, `end-${i}`]);
    }),
  );
});

test('answers without a body have none, and HEAD keeps its length', async () => {
  await using tls = await openTlsHouse();
  using client = await http2ToGuest(tls, (request, response) => {
    if (request.method === 'HEAD') response.setHeader('Content-Length', '1234');
    else response.statusCode = 204;
    response.end();
  });
  const head = await client.ask({ ':method': 'HEAD' });
  assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '1234', 0]);
  const none = await client.ask({ ':method': 'DELETE' });
  assert.deepEqual([none.status, none.body.length], [204, 0]);
});

test('interim answers pass', async () => {
  await using tls = await openTlsHouse();
  using client = await http2ToGuest(tls, (_request, response) => {
    response.writeEarlyHints({ link: '</a.css>; rel=preload' });
    response.end('x');
  });
  const reply = await client.ask({});
  assert.deepEqual([reply.status, reply.interim], [200, [103]]);
  using second = await Http2Client.open(tls, DOMAIN);
  const waiting = second.start({ ':method': 'POST', expect: '100-continue' });
  const answer = readReply(waiting);
  await once(waiting, 'continue');
  waiting.end('{}');
  assert.equal((await answer).body.toString(), 'control');
});

test('a Host that contradicts the authority is refused, and so is CONNECT', async () => {
  await using tls = await openTlsHouse();
  using client = await Http2Client.open(tls, DOMAIN);
  assert.equal((await client.ask({ host: `80-ia.${DOMAIN}` })).status, 400);
  assert.equal((await client.ask({ host: `${DOMAIN}:${tls.port}` })).status, 200);
  const connect = client.session.request({ ':method': 'CONNECT', ':authority': '127.0.0.1:22' });
  assert.equal((await readReply(connect)).status, 405);
});

test('odd requests are answered or reset, and the door goes on', async () => {
  await using tls = await openTlsHouse();
  const seen: string[] = [];
  using client = await http2ToGuest(tls, (request, response) => {
    seen.push(request.url ?? '');
    response.sendDate = false;
    response.writeHead(200, ['X-Odd', 'a', 'Trailer', 'x-t']);
    response.write('x');
    response.addTrailers([['x-t', '\u00ff']]);
    response.end();
  });
  const odd = [
    { ':path': '/a b' },
    { ':path': '/\u00e9' },
    { ':path': '' },
    { ':path': '*', ':method': 'OPTIONS' },
    { ':path': 'http://other.test/x' },
    { ':method': 'G@T' },
    { 'x-odd': 'a\u0001b' },
    { 'x-odd': '\u007f' },
    { 'x-odd': ' \u0080 ' },
    { 'x-long': 'x'.repeat(60_000) },
    { te: 'gzip' },
    { cookie: '' },
  ];
  for (const headers of odd) {
    const reply = await client.ask(headers).catch((error: Error) => error);
    if (reply instanceof Error) continue;
    assert.ok([200, 400, 431].includes(reply.status), `${JSON.stringify(headers).slice(0, 60)}: ${reply.status}`);
    assert.ok(reply.status !== 200 || reply.headers.date === undefined || reply.body.toString() === 'control');
  }
  const stream = client.start({ ':method': 'POST' }, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'x-t': '\u007f\u0080' }));
  const last = readReply(stream).catch((error: Error) => error);
  stream.end('x');
  await last;
  using other = await Http2Client.open(tls, DOMAIN);
  assert.equal((await other.ask({})).body.toString(), 'control');
  assert.ok(seen.includes('/'));
});
