import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { TEST_CERTIFICATE } from '@aenv/node/proxy/testing/certificate.ts';
import { AuthenticationError, Sandbox } from 'e2b';
import { WebSocket } from 'ws';
import { aenv } from '../harness/cli.ts';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';
import { GUEST_SERVER } from './guest-server.ts';

const PORT = 5173;
const TLS_PORT = 8443;
const TLS_SERVER = `
import http.server, ssl, sys
server = http.server.HTTPServer(("0.0.0.0", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
`;

let daemon: TestDaemon;
let secured: Sandbox;
before(async () => {
  daemon = await TestDaemon.start();
  secured = await createSandbox(daemon, {
    network: { allowPublicTraffic: false, maskRequestHost: 'localhost:\x24{PORT}', httpsPorts: [TLS_PORT] },
  });
  await secured.files.write([
    { path: 'server.py', data: GUEST_SERVER },
    { path: 'tls.py', data: TLS_SERVER },
    { path: 'cert.pem', data: TEST_CERTIFICATE.cert },
    { path: 'key.pem', data: TEST_CERTIFICATE.key },
    { path: 'hello', data: 'over TLS' },
  ]);
  await secured.commands.run(`python3 server.py 0.0.0.0 ${PORT}`, { background: true, timeoutMs: 0 });
  await secured.commands.run(`python3 tls.py ${TLS_PORT}`, { background: true, timeoutMs: 0 });
  for (const port of [PORT, TLS_PORT]) {
    await until(async () => (await get('/hello', withToken(port))).status === 200, {
      timeoutMs: 60_000,
      what: `port ${port}`,
    });
  }
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

const routing = (port = PORT) => ({ 'e2b-sandbox-id': secured.sandboxId, 'e2b-sandbox-port': String(port) });
const token = () => ({ 'e2b-traffic-access-token': secured.trafficAccessToken ?? '' });
const withToken = (port = PORT) => ({ ...routing(port), ...token() });

test('a private sandbox answers 403 without its token, in JSON, and 200 with it; envd goes on without', async () => {
  assert.ok(secured.trafficAccessToken);
  for (const bad of [{}, { 'e2b-traffic-access-token': 'wrong' }]) {
    const refused = await get('/hello', { ...routing(), ...bad });
    assert.equal(refused.status, 403);
    const { code, sandboxId } = JSON.parse(refused.body) as Record<string, unknown>;
    assert.deepEqual([code, sandboxId], [403, secured.sandboxId]);
  }
  assert.deepEqual(await get('/hello', withToken()), { status: 200, body: 'hello' });
  const seen = JSON.parse((await get('/headers', withToken())).body) as Record<string, string>;
  assert.equal(seen['e2b-traffic-access-token'], undefined, 'the server in the sandbox never sees the token');
  assert.equal((await secured.commands.run('echo envd')).stdout, 'envd\n');
  const again = await Sandbox.connect(secured.sandboxId, client());
  assert.equal(again.trafficAccessToken, secured.trafficAccessToken);
});

test('T11: a WebSocket to a private sandbox is refused by 403 without the token and passes with it', async () => {
  const url = `${daemon.url.replace('http', 'ws')}/ws`;
  const refused = new WebSocket(url, { headers: routing() });
  const [, answer] = (await once(refused, 'unexpected-response')) as [unknown, http.IncomingMessage];
  assert.equal(answer.statusCode, 403);
  answer.destroy();
  const socket = new WebSocket(url, { headers: withToken() });
  await once(socket, 'open');
  const echoed = once(socket, 'message');
  socket.send('private');
  assert.equal(String((await echoed)[0]), 'private');
  const closed = once(socket, 'close');
  socket.close(4001);
  assert.equal((await closed)[0], 4001);
});

test('T14: the mask is the host that the server sees, by all three routings, and the original comes beside it', async () => {
  const { host, port } = new URL(daemon.url);
  const label = `${PORT}-${secured.sandboxId}.localhost:${port}`;
  const family = { 'x-agentenv-sandbox-id': secured.sandboxId, 'x-agentenv-target-port': String(PORT) };
  for (const [headers, original] of [
    [withToken(), host],
    [{ ...family, ...token() }, host],
    [{ host: label, ...token() }, label],
  ] as const) {
    const seen = JSON.parse((await get('/headers', headers)).body) as Record<string, string>;
    assert.equal(seen.host, `localhost:${PORT}`);
    assert.equal(seen['x-forwarded-host'], original);
  }
});

test('a port that is named as HTTPS is spoken to by TLS', async () => {
  assert.deepEqual(await get('/hello', withToken(TLS_PORT)), { status: 200, body: 'over TLS' });
});

test('what only the host may ask of envd is not there from outside, and refused inside', async () => {
  for (const path of ['/init', '/observe']) {
    const headers = { ...routing(49983), 'x-access-token': 'x', 'x-aenv-host-secret': 'a'.repeat(64) };
    assert.equal((await get(path, headers)).status, 404, path);
  }
  const inside = await secured.commands.run(
    `python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:49983/observe")' 2>&1 | tail -1`,
  );
  assert.match(inside.stdout, /401/);
});

test('the defaults of each API version: v1 opens envd unless asked, v2 never; tokens differ', async () => {
  const answer = await daemon.api('POST', '/sandboxes', { templateID: 'base', timeout: 120 });
  assert.equal(answer.status, 201);
  const open = (await answer.json()) as { sandboxID: string; envdAccessToken?: string };
  try {
    assert.equal(open.envdAccessToken, undefined);
    assert.equal((await daemon.port(open.sandboxID, 49983, '/metrics')).status, 200);
    const refused = await daemon.port(secured.sandboxId, 49983, '/metrics');
    assert.equal(refused.status, 401);
    // The token of one sandbox opens no other.
    const other = await daemon.api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 120, secure: false });
    assert.equal(other.status, 400);
    for (const path of ['/init', '/observe']) {
      assert.equal((await daemon.port(open.sandboxID, 49983, path)).status, 404, path);
    }
  } finally {
    await daemon.api('DELETE', `/sandboxes/${open.sandboxID}`);
  }
});

test('T39: a key made by the CLI works in the SDK until it is revoked, and then no more within a second', async () => {
  const created = await aenv(daemon, ['key', 'create', 'ci', '--output', 'json']);
  assert.equal(created.code, 0, created.stderr);
  const { id, key } = JSON.parse(created.stdout.toString()) as { id: string; key: string };
  const info = await Sandbox.getInfo(secured.sandboxId, client(key));
  assert.equal(info.sandboxId, secured.sandboxId);
  assert.match((await aenv(daemon, ['key', 'ls', '--output', 'table'])).stdout.toString(), new RegExp(`${id} +ci `));
  assert.equal((await aenv(daemon, ['key', 'revoke', id])).code, 0);
  const revoked = Date.now();
  await assert.rejects(Sandbox.getInfo(secured.sandboxId, client(key)), AuthenticationError);
  assert.ok(Date.now() - revoked < 1000);
  assert.equal((await aenv(daemon, ['key', 'revoke', id])).code, 1);
  assert.ok(!(await daemon.log()).includes(key), 'no key in the log');
});

test('a page of another origin may use the control plane, preflight and pages included', async () => {
  const origin = { origin: 'https://app.test' };
  const preflight = await fetch(`${daemon.url}/v2/sandboxes`, {
    method: 'OPTIONS',
    headers: {
      ...origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'x-api-key',
    },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'x-api-key');
  const list = await fetch(`${daemon.url}/v2/sandboxes`, { headers: { ...origin, 'x-api-key': daemon.apiKey } });
  assert.equal(list.headers.get('access-control-allow-origin'), '*');
  assert.match(list.headers.get('access-control-expose-headers') ?? '', /x-next-token/i);
});

function client(apiKey = daemon.apiKey) {
  return { apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey };
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A request by core http, for headers that fetch does not let through (Host). */
async function get(path: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const sent = http.get(`${daemon.url}${path}`, { headers, agent: false });
  const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() };
}
