import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, readlink } from 'node:fs/promises';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from 'e2b';
import { WebSocket } from 'ws';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';
import { GUEST_SERVER } from './guest-server.ts';

const SOAK = process.env.AENV_SOAK === '1';
const PORT = 8080;

/** Says its name on each connection as often as it is asked, and is up in no time. */
const NAMED_SERVER = `
import os, socket, sys
server = socket.create_server(('0.0.0.0', 8080))
name = sys.argv[1].encode()
while True:
    client, _ = server.accept()
    if os.fork() == 0:
        while client.recv(65536):
            client.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-length: %d\\r\\n\\r\\n%s' % (len(name), name))
        os._exit(0)
    client.close()
`;
/** Three slots: one is the sandbox's, the other two are used again and again. */
const FEW_SLOTS = { AENV_NETWORK_CIDR: '10.199.77.16/28', AENV_NETWORK_SLOTS_LOW: '1', AENV_NETWORK_SLOTS_HIGH: '1' };

let daemon: TestDaemon;
let sandbox: Sandbox;
/** a connection over which nothing goes while the other tests run */
let quiet: { readonly socket: WebSocket; readonly since: number };
before(async () => {
  daemon = await TestDaemon.start({ env: FEW_SLOTS });
  sandbox = await createSandbox(daemon);
  await sandbox.files.write('server.py', GUEST_SERVER);
  await sandbox.commands.run(`python3 server.py 0.0.0.0 ${PORT}`, { background: true, timeoutMs: 0 });
  await sandbox.commands.run('python3 server.py 127.0.0.1 8081', { background: true, timeoutMs: 0 });
  for (const port of [PORT, 8081]) {
    await until(async () => (await get('/hello', port)).status === 200, { timeoutMs: 30_000, what: `port ${port}` });
  }
  const socket = openSocket();
  await once(socket, 'open');
  quiet = { socket, since: Date.now() };
});
after(async () => {
  quiet?.socket.terminate();
  await daemon?.[Symbol.asyncDispose]();
});

const get = (path: string, port = PORT, init: RequestInit = {}) => daemon.port(sandbox.sandboxId, port, path, init);
const openSocket = () => new WebSocket(`${daemon.url.replace('http', 'ws')}/ws`, ['chat'], { headers: routing() });
const routing = (port = PORT) => ({ 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': String(port) });

test('a port bound to the loopback of the guest is reachable like any other', async () => {
  assert.equal(await (await get('/hello', 8081)).text(), 'hello');
});

test('a port without a listener is 502 with JSON that says so', async () => {
  const answer = await get('/', 9999);
  assert.equal(answer.status, 502);
  const body = (await answer.json()) as Record<string, unknown>;
  assert.equal(body.code, 502);
  assert.equal(body.port, 9999);
  assert.equal(body.message, 'The sandbox is running but port is not open');
});

test('all three ways of routing reach the same server', async () => {
  const { port } = new URL(daemon.url);
  assert.equal((await request('/hello', { host: `${PORT}-${sandbox.sandboxId}.localhost:${port}` })).body, 'hello');
  assert.equal((await request('/hello', routing())).body, 'hello');
  const other = { 'x-agentenv-sandbox-id': sandbox.sandboxId, 'x-agentenv-target-port': String(PORT) };
  assert.equal((await request('/hello', other)).body, 'hello');
  assert.equal((await request('/proxy/hello', routing())).body, 'hello');
  // With routing headers the platform's own paths go to the sandbox as well.
  assert.equal((await request('/health', routing())).body, 'path /health');
});

test('a host mask is applied, and without one the original host and forwarding headers arrive', async () => {
  const plain = JSON.parse(await (await get('/headers')).text()) as Record<string, string>;
  assert.equal(plain.host, new URL(daemon.url).host);
  assert.equal(plain['x-forwarded-host'], new URL(daemon.url).host);
  assert.equal(plain['x-forwarded-proto'], 'http');
  assert.ok(plain['x-forwarded-for']?.includes('127.0.0.1'));
  for (const name of ['e2b-sandbox-id', 'e2b-sandbox-port', 'x-aenv-host-secret', 'x-api-key']) {
    assert.equal(plain[name], undefined, name);
  }
});

test('redirects pass through untouched', async () => {
  for (const target of ['/x', 'http://127.0.0.1:1/']) {
    const answer = await get(`/redirect?to=${encodeURIComponent(target)}`);
    assert.equal(answer.status, 302);
    assert.equal(answer.headers.get('location'), target);
  }
});

test('large slow bodies arrive whole, in every framing, with flat memory', async () => {
  const megabytes = SOAK ? 64 : 8;
  const expected = createHash('sha256');
  const block = Buffer.alloc(1024 * 1024, 'z');
  for (let i = 0; i < megabytes; i++) expected.update(block);
  const hash = expected.digest('hex');
  const before = await rss();
  for (const framing of ['length', 'chunked', 'close']) {
    const answer = await get(`/body?mb=${megabytes}&framing=${framing}`);
    const seen = createHash('sha256');
    assert.ok(answer.body);
    for await (const chunk of answer.body) {
      seen.update(chunk);
      if (framing === 'length') await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.equal(seen.digest('hex'), hash, framing);
  }
  const stream = new ReadableStream({
    start(controller) {
      for (let i = 0; i < megabytes; i++) controller.enqueue(block);
      controller.close();
    },
  });
  const upload = await get('/sha256', PORT, { method: 'POST', body: stream, duplex: 'half' } as RequestInit);
  assert.equal(await upload.text(), hash);
  const rise = (await rss()) - before;
  assert.ok(rise < 32 * 1024, `the daemon grew by ${rise} KiB`);
});

test('a body that the server cuts short is an error for the client, not a short success', async () => {
  const answer = await get('/short');
  await assert.rejects(answer.arrayBuffer());
});

test('when the sandbox is killed, an open stream breaks and the next request is 502', async () => {
  const own = await createSandbox(daemon);
  await own.files.write('server.py', GUEST_SERVER);
  await own.commands.run(`python3 server.py 0.0.0.0 ${PORT}`, { background: true, timeoutMs: 0 });
  await until(async () => (await daemon.port(own.sandboxId, PORT, '/hello')).status === 200, {
    timeoutMs: 60_000,
    what: 'the server',
  });
  const answer = await daemon.port(own.sandboxId, PORT, '/drip');
  assert.equal(answer.status, 200);
  const reading = answer.arrayBuffer();
  const broken = assert.rejects(reading);
  await own.kill();
  await broken;
  const next = await daemon.port(own.sandboxId, PORT, '/hello');
  assert.equal(next.status, 502);
  assert.equal(((await next.json()) as { code: number }).code, 502);
});

test('a recycled address never answers for the sandbox before', async () => {
  const rounds = SOAK ? 50 : 8;
  const agent = new http.Agent({ keepAlive: true });
  // Each one is the next one's "before".
  for (let round = 0; round <= rounds; round++) {
    await using own = await createSandbox(daemon);
    await own.files.write('server.py', NAMED_SERVER);
    await own.commands.run(`exec python3 -IS server.py number${round}`, { background: true, timeoutMs: 0 });
    const headers = { 'e2b-sandbox-id': own.sandboxId, 'e2b-sandbox-port': '8080' };
    const ask = () => request('/name', headers, agent);
    await until(async () => (await ask()).status === 200, { timeoutMs: 60_000, what: `number ${round} is up` });
    for (let i = 0; i < 3; i++) assert.deepEqual(await ask(), { status: 200, body: `number${round}` });
  }
  agent.destroy();
});

test('WebSocket: after an idle time subprotocol, a large binary message, ping, close codes; abrupt ends', async () => {
  const idle = SOAK ? 120_000 : 20_000;
  const { socket, since } = quiet;
  await delay(Math.max(0, since + idle - Date.now()));
  assert.equal(socket.protocol, 'chat');
  const message = Buffer.alloc(1024 * 1024, 7);
  const echoed = once(socket, 'message');
  socket.send(message);
  assert.ok(message.equals((await echoed)[0] as Buffer));
  const pong = once(socket, 'pong');
  socket.ping();
  await pong;
  const closed = once(socket, 'close');
  socket.close(4001, 'bye');
  assert.equal((await closed)[0], 4001);
  await until(async () => (await (await get('/last-close')).text()) === '4001', {
    timeoutMs: 60_000,
    what: 'the server saw the close code',
  });

  const before = await openSockets();
  for (let at = 0; at < 200; at += 20) {
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const one = openSocket();
        one.on('error', () => {});
        await once(one, 'open');
        one.terminate();
      }),
    );
  }
  await until(async () => (await openSockets()) <= before + 2, {
    timeoutMs: 60_000,
    what: 'no socket is left of 200 clients that died',
  });
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A request by core http, for headers that fetch does not let through (Host). */
async function request(path: string, headers: Record<string, string>, agent?: http.Agent): Promise<Answer> {
  const sent = http.get(`${daemon.url}${path}`, { headers, ...(agent === undefined ? {} : { agent }) });
  const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() };
}

/** Resident memory of the daemon in KiB. */
async function rss(): Promise<number> {
  const status = await readFile(`/proc/${daemon.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
}

/** Open sockets of the daemon. */
async function openSockets(): Promise<number> {
  const fds = await readdir(`/proc/${daemon.pid}/fd`);
  const targets = await Promise.all(fds.map((fd) => readlink(`/proc/${daemon.pid}/fd/${fd}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}
