import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { run, unary } from '../testing/rpc-client.ts';
import { signUrl } from './access.ts';

const TOKEN = '0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0';
let envd: TestEnvd;
before(async () => {
  envd = await testEnvd();
  await envd.init({ accessToken: TOKEN });
});
after(() => envd[Symbol.asyncDispose]());

const messageOf = async (response: Response) => (await response.json()) as { code: number; message: string };

test('every path needs the token, except for the health check', async () => {
  assert.equal((await fetch(`${envd.url}/health`)).status, 204);
  for (const path of ['/metrics', '/envs', '/nosuch', '/process.Process/List']) {
    for (const headers of [{}, { 'x-access-token': 'wrong' }, { 'x-access-token': '' }]) {
      const response = await fetch(envd.url + path, { method: path.startsWith('/p') ? 'POST' : 'GET', headers });
      assert.equal(response.status, 401, path);
      assert.deepEqual(await messageOf(response), {
        code: 401,
        message: 'unauthorized access, please provide a valid access token or method signing if supported',
      });
    }
  }
  const headers = { 'x-access-token': TOKEN };
  assert.equal((await fetch(`${envd.url}/envs`, { headers })).status, 200);
  assert.equal((await fetch(`${envd.url}/nosuch`, { headers })).status, 404);
  assert.equal((await unary(envd.url, 'process.Process/List', {}, { token: TOKEN })).status, 200);
  await assert.rejects(run(envd.url, 'true'), /status 401/);
});

test('the signature of the published test vector', () => {
  const query = { path: 'hello.txt', operation: 'read', username: 'user', expiration: undefined } as const;
  assert.equal(signUrl(query, TOKEN), 'v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E');
});

test('a signed URL opens exactly one operation on one path for one user, until it expires', async () => {
  const path = `${envd.dir}/f`;
  const request = async (operation: 'read' | 'write', change: Record<string, string> = {}, seconds?: number) => {
    const expiration = seconds === undefined ? undefined : String(Math.floor(Date.now() / 1000) + seconds);
    const signature = signUrl({ path, operation: 'write', username: 'root', expiration }, TOKEN);
    const query = new URLSearchParams({ path, username: 'root', signature });
    if (expiration !== undefined) query.set('signature_expiration', expiration);
    for (const [key, value] of Object.entries(change)) query.set(key, value);
    const method = operation === 'read' ? 'GET' : 'POST';
    const headers = { 'content-type': 'application/octet-stream' };
    const url = `${envd.url}/files?${query}`;
    return fetch(url, operation === 'read' ? {} : { method, headers, body: 'x' });
  };
  assert.equal((await request('write')).status, 200);
  assert.equal((await request('write', {}, 5)).status, 200);
  assert.deepEqual(await messageOf(await request('write', {}, -2)), {
    code: 401,
    message: 'signature is already expired',
  });
  const invalid = { code: 401, message: 'invalid signature' };
  assert.deepEqual(await messageOf(await request('read')), invalid);
  assert.deepEqual(await messageOf(await request('write', { path: `${path}2` })), invalid);
  assert.deepEqual(await messageOf(await request('write', { username: 'nobody' })), invalid);
  assert.deepEqual(await messageOf(await request('write', { signature_expiration: '99999999999' })), invalid);
  assert.deepEqual(await messageOf(await request('write', { signature: 'v1_' })), invalid);
});

test('files by header: a wrong token is not made good by anything, none at all asks for a signature', async () => {
  const url = `${envd.url}/files?path=/etc/hostname`;
  const wrong = await fetch(url, { headers: { 'x-access-token': 'wrong' } });
  assert.equal((await messageOf(wrong)).message, 'access token present in header but does not match');
  assert.equal((await messageOf(await fetch(url))).message, 'missing signature query parameter');
  assert.equal((await fetch(url, { headers: { 'x-access-token': TOKEN } })).status, 200);
  assert.equal((await fetch(`${envd.url}/aenv/archive?path=/etc/hostname`)).status, 401);
});

test('a new token replaces the old one, and null opens envd', async () => {
  await using other = await testEnvd();
  await other.init({ accessToken: 'one' });
  await other.init({ accessToken: 'two' });
  const status = async (token: string) =>
    (await fetch(`${other.url}/envs`, { headers: { 'x-access-token': token } })).status;
  assert.deepEqual([await status('one'), await status('two')], [401, 200]);
  await other.init({ accessToken: null });
  assert.equal((await fetch(`${other.url}/envs`)).status, 200);
});

test('scripts of any origin may call, with any header', async () => {
  const headers = {
    origin: 'https://app.test',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,x-access-token',
  };
  const preflight = await fetch(`${envd.url}/process.Process/Start`, { method: 'OPTIONS', headers });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'authorization,x-access-token');
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /HEAD, GET, POST, PUT, PATCH, DELETE/);
  const refused = await fetch(`${envd.url}/envs`, { headers: { origin: 'https://app.test' } });
  assert.equal(
    refused.headers.get('access-control-allow-origin'),
    '*',
    'also for errors, or scripts could not read them',
  );
});

test('metrics have the shape and plausible values', async () => {
  const response = await fetch(`${envd.url}/metrics`, { headers: { 'x-access-token': TOKEN } });
  const metrics = (await response.json()) as Record<string, number>;
  const names = [
    'cpu_count',
    'cpu_used_pct',
    'disk_total',
    'disk_used',
    'mem_cache',
    'mem_total',
    'mem_total_mib',
    'mem_used',
    'mem_used_mib',
    'ts',
  ];
  assert.deepEqual(Object.keys(metrics).toSorted(), names);
  const { cpu_count = 0, cpu_used_pct = -1, mem_total = 0, mem_used = 0, ts = 0, disk_total = 0 } = metrics;
  assert.ok(cpu_count >= 1 && cpu_used_pct >= 0 && cpu_used_pct <= 100 && mem_used > 0 && mem_used < mem_total);
  assert.ok(Math.abs(ts - Date.now() / 1000) < 5 && disk_total > 0);
});

test('what is not HTTP is answered, and bad targets are 400', async () => {
  const { connect } = await import('node:net');
  const send = async (text: string) => {
    const socket = connect(envd.port, '127.0.0.1');
    socket.write(text);
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    return answer;
  };
  assert.match(await send('\x16\x03\x01 hello\r\n\r\n'), /^HTTP\/1\.1 400 /);
  assert.match(await send('GET //[ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'), /^HTTP\/1\.1 400 /);
  assert.match(
    await send('GET http://other/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
    /^HTTP\/1\.1 204 /,
  );
});
