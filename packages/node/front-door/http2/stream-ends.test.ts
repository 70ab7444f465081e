import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { DOMAIN } from '../../certificates/testing/certificate-folder.ts';
import { eventually } from '../../proxy/testing/clients.ts';
import { rawSandbox } from '../../proxy/testing/house.ts';
import { Http2Client, http2ToGuest, openTlsHouse, readReply } from '../testing/tls-clients.ts';

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
  using client = await http2ToGuest(tls, listener);
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

test('connections without streams are closed after their time, those with a quiet stream stay', async () => {
  await using tls = await openTlsHouse({ keepAliveTimeoutMs: 100 });
  let finish = () => {};
  using busy = await http2ToGuest(tls, (_request, response) => {
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

test('whoever does not read holds the other side back, in both directions', async () => {
  await using tls = await openTlsHouse();
  let poured = 0;
  const held: IncomingMessage[] = [];
  using client = await http2ToGuest(tls, (request, response) => {
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
  // What the kernel buffers on the way to the guest and back is most of it, and takes its time on a busy machine.
  let before: number[];
  do {
    before = [poured, sent];
    await new Promise((resolve) => setTimeout(resolve, 500));
  } while ((poured !== before[0] || sent !== before[1]) && poured < 24 * MIB && sent < 24 * MIB);
  const sentBefore = sent;
  assert.ok(poured < 24 * MIB && sent < 24 * MIB, `${poured} and ${sent} bytes`);
  download.destroy();
  held[0]?.resume();
  await eventually(() => sent > sentBefore + 8 * MIB, 'the upload goes on');
  upload.destroy();
});
