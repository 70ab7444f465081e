import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { HOST_ONLY_PATHS } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import fc from 'fast-check';
import { ask, exchangeRaw, to } from './testing/clients.ts';
import { envdGuest, freshAddress } from './testing/guests.ts';
import { House } from './testing/house.ts';

test('redirects of a server in the sandbox pass unfollowed', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    response.writeHead(302, { Location: request.url === '/a' ? '/x' : 'http://127.0.0.1:1/' }).end();
  });
  const inside = await ask(`${house.url}/a`, { headers: to('ia', guest.port) });
  assert.equal(inside.status, 302);
  assert.equal(inside.headers.location, '/x');
  const outside = await ask(`${house.url}/b`, { headers: to('ia', guest.port) });
  assert.equal(outside.headers.location, 'http://127.0.0.1:1/');
});

test('all three routings reach the server, which sees the host and where the request came from', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    const {
      host,
      'x-forwarded-host': forwardedHost,
      'x-forwarded-for': by,
      'x-forwarded-proto': proto,
    } = request.headers;
    response.end(JSON.stringify({ url: request.url, host, forwardedHost, by, proto }));
  });
  const own = new URL(house.url).host;
  const label = `${guest.port}-ia.localhost:8000`;
  const seen = (url: string, host: string) => ({ url, host, forwardedHost: host, by: '127.0.0.1', proto: 'http' });
  const family = { 'x-agentenv-sandbox-id': 'ia', 'x-agentenv-target-port': String(guest.port) };
  assert.deepEqual((await ask(`${house.url}/a?b`, { headers: to('ia', guest.port) })).json(), seen('/a?b', own));
  assert.deepEqual((await ask(`${house.url}/health`, { headers: family })).json(), seen('/health', own));
  assert.deepEqual((await ask(`${house.url}/proxy/a`, { headers: family })).json(), seen('/a', own));
  assert.deepEqual((await ask(`${house.url}/proxy/a`, { headers: { Host: label } })).json(), seen('/proxy/a', label));
});

test('a server that insists on its host gets it with a mask, and says no without', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    const wanted = request.headers.host === `localhost:${guest.port}`;
    response.writeHead(wanted ? 200 : 403).end(request.headers['x-forwarded-host']);
  });
  assert.equal((await ask(house.url, { headers: to('ia', guest.port) })).status, 403);
  house.directory.run('ia', guest.address, { maskRequestHost: 'localhost:\x24{PORT}' });
  const masked = await ask(house.url, { headers: { Host: `${guest.port}-ia.dev.test` } });
  assert.deepEqual([masked.status, masked.body.toString()], [200, `${guest.port}-ia.dev.test`]);
});

test('unknown and unavailable sandboxes answer 502 as the clients know it, and browsers may read it', async () => {
  await using house = await House.open();
  const unknown = await ask(house.url, { headers: to('inone', 8080) });
  assert.equal(unknown.status, 502);
  assert.equal(unknown.headers['content-type'], 'application/json');
  assert.equal(unknown.headers['access-control-allow-origin'], '*');
  const { sandboxId, message, code, error_code, remediation } = unknown.json();
  assert.deepEqual([sandboxId, message, code, error_code], ['inone', 'The sandbox was not found', 502, 'sandbox_gone']);
  assert.equal(typeof remediation, 'string');

  house.directory.run('ia', freshAddress());
  house.directory.end('ia', 'paused');
  const paused = await ask(house.url, { headers: { Host: '80-ia.x' } });
  assert.equal(paused.status, 502);
  assert.match(String(paused.json().message), /paused/);
  assert.match(String(paused.json().remediation), /aenv resume/, 'it has not ended: nobody has to make a new one');
});

test('a browser that opens a page gets a page, a script JSON', async () => {
  await using house = await House.open();
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
  const page = await ask(house.url, { headers: { Host: '80-inone.x', Accept: accept, 'Sec-Fetch-Mode': 'navigate' } });
  assert.equal(page.status, 502);
  assert.match(page.headers['content-type'] ?? '', /^text\/html/);
  assert.match(page.body.toString(), /The sandbox was not found/);
  assert.match(String(page.headers['content-security-policy']), /default-src 'none'/);
  const script = await ask(house.url, { headers: { Host: '80-inone.x', Accept: accept, 'Sec-Fetch-Mode': 'cors' } });
  assert.equal(script.json().code, 502);
});

test('a private sandbox needs its token on every port but that of envd, and the server never sees it', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => void response.end(JSON.stringify(request.headers)), {
    trafficAccessToken: 'right',
  });
  const headers = to('ia', guest.port);
  for (const token of [undefined, '', 'wrong', 'right2', 'righ']) {
    const given = token === undefined ? {} : { 'e2b-traffic-access-token': token };
    const refused = await ask(house.url, { headers: { ...headers, ...given } });
    assert.equal(refused.status, 403);
    const { sandboxId, code, message } = refused.json();
    assert.deepEqual([sandboxId, code, typeof message], ['ia', 403, 'string']);
  }
  assert.equal(guest.accepted(), 0, 'nothing was dialled');
  const allowed = await ask(house.url, { headers: { ...headers, 'E2B-Traffic-Access-Token': 'right' } });
  assert.equal(allowed.status, 200);
  assert.equal(allowed.json()['e2b-traffic-access-token'], undefined);
  assert.equal(allowed.json()['e2b-sandbox-id'], undefined);

  await house.keep(envdGuest(guest.address, 'host-secret', (_request, response) => void response.writeHead(204).end()));
  assert.equal((await ask(`${house.url}/health`, { headers: to('ia', ENVD_PORT) })).status, 204);
});

test('host-only paths of envd are not there for clients, in any spelling, and nothing is dialled for them', async () => {
  await using house = await House.open();
  const address = freshAddress();
  const reached: string[] = [];
  const envd = await house.keep(
    envdGuest(address, 'host-secret', (request, response) => {
      reached.push(request.url ?? '');
      response.end(String(request.headers['x-aenv-host-secret']));
    }),
  );
  house.directory.run('ia', address);
  const open = await ask(`${house.url}/files?path=/init`, {
    headers: { ...to('ia', ENVD_PORT), 'X-Aenv-Host-Secret': 'host-secret' },
  });
  assert.equal(open.body.toString(), 'undefined', 'the secret of the host is not taken from clients');
  reached.length = 0;
  const accepted = envd.accepted();

  const head = `Host: x\r\nConnection: close\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: ${ENVD_PORT}\r\n\r\n`;
  const prefix = fc.constantFrom(
    '',
    '/',
    '//',
    '/.',
    '/x/..',
    '/%2e',
    '\\',
    '/proxy',
    '/proxy/',
    'http://x',
    'http://h/..',
  );
  const change = fc.constantFrom(
    (path: string) => path,
    (path: string) => path.toUpperCase(),
    (path: string) => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
    (path: string) => path.replace('/', '%2f'),
  );
  const suffix = fc.constantFrom('', '/', '?', '?x', '#', ';', '%00', '/.', '/x', '/../init', '%2f');
  const spelling = fc
    .tuple(prefix, fc.constantFrom(...HOST_ONLY_PATHS), change, suffix)
    .map(([before, path, changed, after]) => `${before}${changed(path)}${after}`);
  await fc.assert(
    fc.asyncProperty(spelling, fc.constantFrom('GET', 'POST'), async (path, method) => {
      const { text } = await exchangeRaw(house.url, `${method} ${path} HTTP/1.1\r\n${head}`);
      assert.match(text, /^HTTP\/1\.1 40[04] [\s\S]*"code":40[04]/, path);
    }),
    { numRuns: 300 },
  );
  assert.deepEqual(reached, []);
  assert.equal(envd.accepted(), accepted);
});

test('only envd gets X-Access-Token, and an API key of the platform goes nowhere', async () => {
  await using house = await House.open();
  const echo = (request: IncomingMessage, response: ServerResponse) =>
    void response.end(JSON.stringify(request.headers));
  const guest = await house.serve('ia', echo);
  await house.keep(envdGuest(guest.address, 'host-secret', echo));
  const secrets = { 'X-Access-Token': 'envd', 'X-API-Key': `e2b_${'0'.repeat(64)}` };
  const app = (await ask(house.url, { headers: { ...to('ia', guest.port), ...secrets } })).json();
  assert.deepEqual([app['x-access-token'], app['x-api-key']], [undefined, undefined]);
  const envd = (await ask(house.url, { headers: { ...to('ia', ENVD_PORT), ...secrets } })).json();
  assert.deepEqual([envd['x-access-token'], envd['x-api-key']], ['envd', undefined]);
});
