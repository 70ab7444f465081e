import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectNet } from 'node:net';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { WebSocket, WebSocketServer } from 'ws';
import { DOMAIN } from '../../certificates/testing/certificate-folder.ts';
import { eventually, to } from '../../proxy/testing/clients.ts';
import { House } from '../../proxy/testing/house.ts';
import { askHttp1, Http2Client, openTlsHouse, tlsTo } from '../testing/tls-clients.ts';

test('the daemon, hosts of sandboxes and routing headers are reached by verified TLS in both versions of HTTP', async () => {
  await using tls = await openTlsHouse();
  const guest = await tls.house.serve('ia', (request, response) => {
    const { host, 'x-forwarded-proto': proto, 'x-forwarded-for': from } = request.headers;
    response.end(`${host} ${request.url} ${proto} ${from}`);
  });
  const label = `${guest.port}-ia.${DOMAIN}`;
  const cases = [
    { host: `api.${DOMAIN}`, headers: {}, body: 'control' },
    { host: label, headers: {}, body: `${label}:${tls.port} /x https 127.0.0.1` },
    {
      host: `sandbox.${DOMAIN}`,
      headers: to('ia', guest.port),
      body: `sandbox.${DOMAIN}:${tls.port} /x https 127.0.0.1`,
    },
  ];
  for (const { host, headers, body } of cases) {
    assert.deepEqual(await askHttp1(tls, host, '/x', headers), { status: 200, body });
    using client = await Http2Client.open(tls, host);
    const reply = await client.ask({ ':path': '/x', ...headers });
    assert.deepEqual([reply.status, reply.body.toString()], [200, body]);
  }
});

test('a WebSocket passes over TLS', async () => {
  await using tls = await openTlsHouse();
  const guest = await tls.house.serve('ia', (_request, response) => void response.end());
  const { port } = guest;
  await guest.close();
  const server = new WebSocketServer({ host: guest.address, port });
  await tls.house.keep({ close: () => void server.close() });
  server.on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
  const host = `${port}-ia.${DOMAIN}`;
  const socket = new WebSocket(`wss://127.0.0.1:${tls.port}/chat`, {
    ...{ ca: tls.ca, servername: host, headers: { host: `${host}:${tls.port}` } },
  });
  await once(socket, 'open');
  socket.send('over TLS');
  assert.equal(String((await once(socket, 'message'))[0]), 'over TLS');
  tls.house.directory.end('ia');
  const [code] = await once(socket, 'close');
  assert.equal(code, 1006);
});

test('old versions of TLS are refused, and so is plain HTTP; connections are counted and none is left', async () => {
  await using tls = await openTlsHouse();
  const old = connectTls({ host: '127.0.0.1', port: tls.port, ca: tls.ca, servername: DOMAIN, maxVersion: 'TLSv1.1' });
  await assert.rejects(once(old, 'secureConnect'));
  const plain = connectNet(tls.port, '127.0.0.1');
  plain.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  plain.on('error', () => {});
  plain.resume();
  await once(plain, 'close');
  const open = await tlsTo(tls, DOMAIN, 'http/1.1');
  assert.equal(tls.house.door.stats().clients, 1);
  open.destroy();
  await eventually(() => tls.house.door.stats().clients === 0, 'no connection');
});

test('a close lets requests under way finish, over HTTP/2 too, and does not wait for idle connections', async () => {
  let finish = () => {};
  await using tls = await openTlsHouse({ closeGraceMs: 5_000 }, (request, response) => {
    if (request.url === '/idle') {
      response.end();
      return;
    }
    response.write('first ');
    finish = () => void response.end('last');
  });
  using client = await Http2Client.open(tls, DOMAIN);
  const stream = client.start({}, { endStream: true });
  await once(stream, 'response');
  const idle = await tlsTo(tls, DOMAIN, 'http/1.1');
  idle.write(`GET /idle HTTP/1.1\r\nHost: ${DOMAIN}\r\n\r\n`);
  await once(idle, 'data');
  const handshaking = connectNet(tls.port, '127.0.0.1');
  handshaking.on('error', () => {});
  await once(handshaking, 'connect');
  const begun = Date.now();
  const closed = tls.house.door.close();
  let body = '';
  stream.on('data', (chunk: Buffer) => {
    body += chunk;
  });
  setTimeout(finish, 100);
  await once(stream, 'end');
  assert.equal(body, 'first last');
  handshaking.destroy();
  await closed;
  assert.ok(Date.now() - begun < 4_000);
  idle.destroy();
});

test('an address that is taken is told, and the door can still be closed', async () => {
  await using tls = await openTlsHouse();
  await using other = await House.open();
  const address = { host: '127.0.0.1', port: tls.port };
  await assert.rejects(other.door.listenTls(address, tls.certificate), { code: 'port_in_use' });
});
