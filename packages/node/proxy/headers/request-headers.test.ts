import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RouteTarget } from '../contract.ts';
import type { SandboxRoute } from '../routing/route.ts';
import { type ForwardedRequest, forwardedHeaders, forwardedTrailers } from './request-headers.ts';

const route: SandboxRoute = { kind: 'sandbox', sandboxId: 'ia', port: 3000, path: '/', host: 'App.test:8000' };
const target: RouteTarget = {
  sandboxId: 'ia',
  incarnation: '1',
  address: '127.0.0.1',
  hostSecret: 's',
  httpsPorts: [],
};
const plain: ForwardedRequest = {
  method: 'GET',
  rawHeaders: [],
  framing: 'none',
  clientAddress: '10.0.0.9',
  secure: false,
  upgrade: false,
};
const added = ['X-Forwarded-For', '10.0.0.9', 'X-Forwarded-Host', 'App.test:8000', 'X-Forwarded-Proto', 'http'];

function forward(rawHeaders: string[], more: Partial<ForwardedRequest> = {}, on: Partial<SandboxRoute> = {}) {
  return forwardedHeaders({ ...plain, rawHeaders, ...more }, { ...route, ...on }, target);
}

test('case, order and duplicates of fields survive, the host passes unchanged', () => {
  assert.deepEqual(
    forward(['X-B', '1', 'x-a', '2', 'X-b', '3', 'HOST', 'App.test:8000', 'Cookie', 'a', 'cookie', 'b']),
    ['Host', 'App.test:8000', ...['X-B', '1', 'x-a', '2', 'X-b', '3', 'Cookie', 'a', 'cookie', 'b'], ...added],
  );
});

test('hop-by-hop fields end here, those that Connection names too', () => {
  const raw = ['Connection', 'close, X-Mine ,te', 'X-Mine', '1', 'Keep-Alive', 'x', 'TE', 'gzip', 'Upgrade', 'h2c'];
  const more = ['Proxy-Connection', 'x', 'Transfer-Encoding', 'chunked', 'connection', 'x-other', 'X-Other', '2'];
  assert.deepEqual(forward([...raw, ...more]), ['Host', 'App.test:8000', ...added]);
});

test('Connection cannot take away what frames and addresses the request', () => {
  const raw = ['Connection', 'content-length, host, expect', 'Content-Length', '5', 'Expect', '100-continue'];
  assert.deepEqual(forward(raw, { framing: 'length', method: 'POST' }), [
    'Host',
    'App.test:8000',
    ...['Content-Length', '5', 'Expect', '100-continue'],
    ...added,
  ]);
});

test("the platform's own fields do not reach the sandbox", () => {
  const raw = ['E2B-Sandbox-Id', 'ia', 'e2b-sandbox-port', '3000', 'x-agentenv-sandbox-id', 'ia'];
  const more = ['X-AgentENV-Target-Port', '1', 'e2b-traffic-access-token', 't', 'X-Aenv-Host-Secret', 'guess'];
  assert.deepEqual(forward([...raw, ...more, 'X-API-Key', 'e2b_0f']), ['Host', 'App.test:8000', ...added]);
  assert.deepEqual(forward(['X-API-Key', 'of the app']).slice(2, 4), ['X-API-Key', 'of the app']);
});

test('X-Access-Token reaches only those who check it: envd, and the code interpreter where it runs code', () => {
  const passes = (on: Partial<SandboxRoute>) => forward(['X-Access-Token', 't'], {}, on).includes('X-Access-Token');
  assert.ok(!passes({}));
  assert.ok(passes({ port: 49983 }));
  assert.ok(passes({ port: 49999, path: '/execute' }) && passes({ port: 49999, path: '/execute?source=ci' }));
  assert.ok(!passes({ port: 49999, path: '/contexts' }) && !passes({ port: 49999, path: '/executes' }));
  assert.ok(!passes({ port: 8080, path: '/execute' }));
});

test('forwarded fields: the address is appended, the host is that of the request, a known scheme is kept', () => {
  const raw = ['X-Forwarded-For', '1.1.1.1', 'x-forwarded-for', '2.2.2.2', 'X-Forwarded-Host', 'evil'];
  assert.deepEqual(forward([...raw, 'X-Forwarded-Proto', 'https']).slice(2), [
    ...['X-Forwarded-For', '1.1.1.1, 2.2.2.2, 10.0.0.9', 'X-Forwarded-Host', 'App.test:8000'],
    ...['X-Forwarded-Proto', 'https'],
  ]);
  assert.equal(forward(['X-Forwarded-Proto', 'gopher'], { secure: true }).at(-1), 'https');
});

test('a mask replaces the host, the port put in; the original stays in X-Forwarded-Host', () => {
  const masked = forwardedHeaders(plain, route, { ...target, maskRequestHost: 'localhost:\x24{PORT}' });
  assert.deepEqual(masked.slice(0, 2), ['Host', 'localhost:3000']);
  assert.ok(masked.includes('App.test:8000'));
});

test('a request without Host gets one', () => {
  assert.deepEqual(forward([], {}, { host: undefined }).slice(0, 2), ['Host', 'localhost:3000']);
});

test('framing is restated: chunked, or an explicit empty body where none is not the default', () => {
  assert.deepEqual(forward([], { framing: 'chunked', method: 'POST' }).slice(-2), ['Transfer-Encoding', 'chunked']);
  assert.deepEqual(forward([], { method: 'POST' }).slice(-2), ['Content-Length', '0']);
  assert.equal(
    forward(['Content-Length', '0'], { method: 'POST' }).filter((text) => text === 'Content-Length').length,
    1,
  );
});

test('trailers are asked for when the client can take them, upgrades pass when wanted', () => {
  assert.deepEqual(forward(['TE', 'gzip, Trailers']).slice(-2), ['TE', 'trailers']);
  assert.deepEqual(
    forward(['Upgrade', 'WebSocket', 'Connection', 'keep-alive, Upgrade'], { upgrade: true }).slice(-4),
    [...['Connection', 'Upgrade', 'Upgrade', 'WebSocket']],
  );
});

test('trailers carry nothing that frames, routes or authenticates', () => {
  const raw = ['X-Sum', '1', 'Host', 'x', 'content-length', '1', 'X-Aenv-Host-Secret', 's', 'Authorization', 'b'];
  assert.deepEqual(forwardedTrailers(raw), ['X-Sum', '1']);
});
