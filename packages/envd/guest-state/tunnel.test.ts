import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { HOST_SECRET_HEADER } from '@aenv/contracts/envd/host-api.ts';
import { TEST_SECRET, type TestEnvd, testEnvd } from '../testing/envd.ts';

let envd: TestEnvd;
let server: Server;
let port: number;
before(async () => {
  envd = await testEnvd();
  await envd.init({ accessToken: 'token' });
  // Echoes everything after the client has ended its side, so that half-closed ends have to work.
  server = createServer({ allowHalfOpen: true }, async (socket) => {
    const chunks: Buffer[] = [];
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) chunks.push(chunk);
    socket.end(Buffer.concat(chunks));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  port = (server.address() as AddressInfo).port;
});
after(async () => {
  server.close();
  await envd[Symbol.asyncDispose]();
});

async function open(target: string, secret = TEST_SECRET, early = ''): Promise<{ socket: Socket; head: string }> {
  const socket = connect({ port: envd.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${HOST_SECRET_HEADER}: ${secret}\r\n\r\n${early}`);
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    const chunk: Buffer | null = socket.read();
    if (chunk !== null) head += chunk;
    else await new Promise((resolve) => socket.once('readable', resolve));
  }
  return { socket, head };
}

test('bytes go both ways, early ones and half-closed ends included', async () => {
  const { socket, head } = await open(`127.0.0.1:${port}`, TEST_SECRET, 'early ');
  assert.match(head, /^HTTP\/1\.1 200 /);
  const bytes = randomBytes(5_000_000);
  socket.end(bytes);
  const hash = createHash('sha256');
  for await (const chunk of socket) hash.update(chunk);
  assert.equal(hash.digest('hex'), createHash('sha256').update('early ').update(bytes).digest('hex'));
});

test('only the host, only the loopback, only open ports', async () => {
  const status = async (target: string, secret?: string) => {
    const { socket, head } = await open(target, secret);
    socket.destroy();
    return Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]);
  };
  assert.equal(await status(`127.0.0.1:${port}`, 'b'.repeat(64)), 401);
  assert.equal(await status(`127.0.0.1:${port}`, 'token'), 401, "a client's token opens no tunnel");
  assert.equal(await status(`10.0.0.1:${port}`), 400);
  assert.equal(await status('127.0.0.1:0'), 400);
  assert.equal(await status('127.0.0.1:99999'), 400);
  const free = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => free.once('listening', resolve));
  const closed = (free.address() as AddressInfo).port;
  await new Promise((resolve) => free.close(resolve));
  assert.equal(await status(`127.0.0.1:${closed}`), 502);
});

test('before the first init there is no host, so there is no tunnel', async () => {
  await using other = await testEnvd();
  const socket = connect(other.port, '127.0.0.1');
  socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nhost: x\r\n${HOST_SECRET_HEADER}: ${TEST_SECRET}\r\n\r\n`);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  assert.match(answer, /^HTTP\/1\.1 401 /);
});

test('when the client goes away, the connection to the port does, too', async () => {
  const gone = new Promise((resolve) => server.once('connection', (socket) => socket.once('close', resolve)));
  const { socket } = await open(`127.0.0.1:${port}`);
  socket.resetAndDestroy();
  await gone;
});
