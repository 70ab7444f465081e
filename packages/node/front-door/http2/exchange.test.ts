import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { DOMAIN } from '../../certificates/testing/certificate-folder.ts';
import { eventually } from '../../proxy/testing/clients.ts';
import { rawSandbox } from '../../proxy/testing/house.ts';
import { Http2Client, openTlsHouse, readReply, type TlsHouse } from '../testing/tls-clients.ts';

async function withGuest(
  tls: TlsHouse,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Http2Client> {
  const guest = await tls.house.serve('ia', listener);
  return await Http2Client.open(tls, `${guest.port}-ia.${DOMAIN}`);
}

test('heads pass: one Cookie, repeated fields, TE, no fields that are about a connection', async () => {
  await using tls = await openTlsHouse();
  let seen: string[] = [];
  using client = await withGuest(tls, (request, response) => {
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
  using client = await withGuest(tls, (request, response) => {
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
  using client = await withGuest(tls, (request, response) => {
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
  using client = await withGuest(tls, (_request, response) => {
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

test('an answer that ends short and a sandbox that ends reset the stream; others on the connection go on', async () => {
  await using tls = await openTlsHouse();
  const port = await rawSandbox(tls.house, (socket, head) => {
    if (head.startsWith('GET /whole')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole');
    else if (head.startsWith('GET /length')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort');
    else if (head.startsWith('GET /chunked'))
      socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n');
    else socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n');
  });
  using client = await Http2Client.open(tls, `${port}-ia.${DOMAIN}`);
  for (const path of ['/length', '/chunked']) {
    await assert.rejects(client.ask({ ':path': path }), /INTERNAL_ERROR/, path);
  }
  assert.equal((await client.ask({ ':path': '/whole' })).body.toString(), 'whole');
  const endless = client.start({ ':path': '/endless' }, { endStream: true });
  const reply = readReply(endless);
  await once(endless, 'data');
  tls.house.directory.end('ia');
  await assert.rejects(reply, /INTERNAL_ERROR/);
  const after = await client.ask({});
  assert.equal(after.status, 502);
  assert.equal((JSON.parse(after.body.toString()) as { error_code: string }).error_code, 'sandbox_gone');
});

test('a client that resets its stream or its connection within an upload leaves an upload that was cut', async () => {
  await using tls = await openTlsHouse();
  const ends: string[] = [];
  let begun = 0;
  const listener = (request: IncomingMessage) => {
    request.once('data', () => begun++);
    request.resume();
    request.on('error', () => {});
    request.on('end', () => ends.push('complete'));
    request.on('close', () => ends.push(request.complete ? 'whole' : 'cut'));
  };
  using client = await withGuest(tls, listener);
  const stream = client.start({ ':method': 'POST' });
  stream.on('error', () => {});
  stream.write('part');
  await eventually(() => begun === 1, 'the upload has begun');
  stream.destroy(new Error('given up'));
  await eventually(() => ends.length === 1, 'the upload has ended');
  const last = client.start({ ':method': 'POST' });
  last.on('error', () => {});
  last.write('part');
  await eventually(() => begun === 2, 'the upload has begun');
  client.session.destroy();
  await eventually(() => ends.length === 2, 'the upload has ended');
  assert.deepEqual(ends, ['cut', 'cut']);
  await eventually(() => tls.house.door.stats().sandboxRequests === 0, 'nothing is under way');
});

test('an answer before the end of the upload arrives, and the rest of the upload is waived', async () => {
  await using tls = await openTlsHouse({ drainMs: 100 }, (_request, response) => {
    response.writeHead(413);
    response.end('too much');
  });
  using client = await Http2Client.open(tls, DOMAIN);
  const stream = client.start({ ':method': 'POST' });
  const reply = readReply(stream);
  stream.write(Buffer.alloc(1024 * 1024));
  const begun = Date.now();
  const { status, body } = await reply;
  assert.deepEqual([status, body.toString()], [413, 'too much']);
  assert.ok(Date.now() - begun < 5_000);
});

test('a Host that contradicts the authority is refused, and so is CONNECT', async () => {
  await using tls = await openTlsHouse();
  using client = await Http2Client.open(tls, DOMAIN);
  assert.equal((await client.ask({ host: `80-ia.${DOMAIN}` })).status, 400);
  assert.equal((await client.ask({ host: `${DOMAIN}:${tls.port}` })).status, 200);
  const connect = client.session.request({ ':method': 'CONNECT', ':authority': '127.0.0.1:22' });
  assert.equal((await readReply(connect)).status, 405);
});

test('connections without streams are closed after their time, those with a quiet stream stay', async () => {
  await using tls = await openTlsHouse({ keepAliveTimeoutMs: 100 });
  let finish = () => {};
  using busy = await withGuest(tls, (_request, response) => {
    response.writeHead(200);
    response.write('first');
    finish = () => void response.end('last');
  });
  const reply = busy.ask({});
  using idle = await Http2Client.open(tls, DOMAIN);
  await once(idle.session, 'close');
  await new Promise((resolve) => setTimeout(resolve, 300));
  finish();
  assert.equal((await reply).body.toString(), 'firstlast');
  await once(busy.session, 'close');
});

test('odd requests are answered or reset, and the door goes on', async () => {
  await using tls = await openTlsHouse();
  const seen: string[] = [];
  using client = await withGuest(tls, (request, response) => {
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

test('whoever does not read holds the other side back, in both directions', async () => {
  await using tls = await openTlsHouse();
  let poured = 0;
  const held: IncomingMessage[] = [];
  using client = await withGuest(tls, (request, response) => {
    if (request.method === 'POST') {
      held.push(request);
      return;
    }
    const chunk = Buffer.alloc(64 * 1024);
    const pour = () => {
      for (;;) {
        poured += chunk.length;
        if (!response.write(chunk)) return;
      }
    };
    response.on('drain', pour);
    pour();
  });
  const MIB = 1024 * 1024;
  const download = client.start({}, { endStream: true });
  download.on('error', () => {});
  await once(download, 'response');
  const upload = client.start({ ':method': 'POST' });
  upload.on('error', () => {});
  let sent = 0;
  const send = () => {
    upload.write(Buffer.alloc(64 * 1024), (error) => {
      if (error) return;
      sent += 64 * 1024;
      send();
    });
  };
  send();
  await eventually(() => held.length === 1, 'the upload has begun');
  // What the kernel buffers on the way to the guest and back is most of it.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const [pouredBefore, sentBefore] = [poured, sent];
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.deepEqual([poured, sent], [pouredBefore, sentBefore], 'both stand still');
  assert.ok(poured < 24 * MIB && sent < 24 * MIB, `${poured} and ${sent} bytes`);
  download.destroy();
  held[0]?.resume();
  await eventually(() => sent > sentBefore + 8 * MIB, 'the upload goes on');
  upload.destroy();
});
