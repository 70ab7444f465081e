import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideRoute, type Route } from './route.ts';

function decide(url: string, headers: Record<string, string>, httpVersion = '1.1'): Route {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return decideRoute({ url, httpVersion, headers: lower, rawHeaders: Object.entries(headers).flat() });
}

const host = { Host: 'api.test:8000' };
const e2b = { 'E2b-Sandbox-Id': 'ia', 'E2b-Sandbox-Port': '3000' };
const own = { 'x-agentenv-sandbox-id': 'ia', 'x-agentenv-target-port': '3000' };
const sandbox = (path: string, more: object = {}) => ({
  kind: 'sandbox',
  sandboxId: 'ia',
  port: 3000,
  path,
  host: 'api.test:8000',
  ...more,
});

test('without a label and routing headers a request is for the daemon', () => {
  assert.deepEqual(decide('/sandboxes?x=1', host), { kind: 'control', path: '/sandboxes?x=1' });
  assert.deepEqual(decide('/proxyfoo', host), { kind: 'control', path: '/proxyfoo' });
  assert.deepEqual(decide('/', {}, '1.0'), { kind: 'control', path: '/' });
});

test('with routing headers of either family every path goes to the sandbox', () => {
  for (const path of ['/health', '/metrics', '/sandboxes', '/', '*']) {
    assert.deepEqual(decide(path, { ...host, ...e2b }), sandbox(path));
    assert.deepEqual(decide(path, { ...host, ...own }), sandbox(path));
  }
  assert.deepEqual(
    decide('/', { ...host, 'e2b-sandbox-id': 'ia', 'x-agentenv-target-port': '3000' }),
    sandbox('/'),
    'an id and a port of different families go together',
  );
});

test('the proxy prefix is stripped with routing headers and refused without', () => {
  assert.deepEqual(decide('/proxy', { ...host, ...e2b }), sandbox('/'));
  assert.deepEqual(decide('/proxy/', { ...host, ...e2b }), sandbox('/'));
  assert.deepEqual(decide('/proxy/a/b?c', { ...host, ...e2b }), sandbox('/a/b?c'));
  assert.deepEqual(decide('/proxy?c', { ...host, ...e2b }), sandbox('/?c'));
  for (const path of ['/proxy', '/proxy/', '/proxy/a', '/proxy?x']) assert.equal(code(decide(path, host)), 'bad_route');
});

test('the host label stands above the headers and keeps the path', () => {
  const labelled = { Host: '80-ib.api.test', ...e2b };
  assert.deepEqual(decide('/proxy/x', labelled), {
    kind: 'sandbox',
    sandboxId: 'ib',
    port: 80,
    path: '/proxy/x',
    host: '80-ib.api.test',
  });
});

test('the authority of an absolute target stands above the Host header', () => {
  assert.deepEqual(decide('http://80-ib.api.test/x?y', host), {
    kind: 'sandbox',
    sandboxId: 'ib',
    port: 80,
    path: '/x?y',
    host: '80-ib.api.test',
  });
  assert.deepEqual(decide('http://api.test:8000', { Host: '80-ib.api.test', ...e2b }), sandbox('/'));
  assert.deepEqual(decide('HTTP://api.test?q', host), { kind: 'control', path: '/?q' });
});

test('half a pair, contradictions and bad values are refused', () => {
  const cases: Record<string, string>[] = [
    { 'e2b-sandbox-id': 'ia' },
    { 'e2b-sandbox-port': '80' },
    { 'x-agentenv-sandbox-id': 'ia' },
    { ...e2b, 'x-agentenv-sandbox-id': 'ib' },
    { ...e2b, 'x-agentenv-target-port': '81' },
    ...['0', '65536', '08x', '080', '', ' 80', '80, 80', '-1', '8e1', '٣'].map((port) => ({
      'e2b-sandbox-id': 'ia',
      'e2b-sandbox-port': port,
    })),
    ...['', 'a-b-c', 'IA', 'a/b', 'ia, ib', '../x'].map((id) => ({ 'e2b-sandbox-id': id, 'e2b-sandbox-port': '80' })),
  ];
  for (const headers of cases) {
    assert.equal(code(decide('/', { ...host, ...headers })), 'bad_route', JSON.stringify(headers));
  }
  assert.equal(code(decide('/', { Host: '0-ia.api.test' })), 'bad_route');
  assert.equal(code(decide('/', { Host: '80-ia-b-c.api.test' })), 'bad_route');
});

test('a missing or doubled Host and a target that is no path are refused', () => {
  assert.equal(code(decide('/', {})), 'bad_route');
  assert.equal(
    code(decideRoute({ url: '/', httpVersion: '1.1', headers: { host: 'a' }, rawHeaders: ['Host', 'a', 'host', 'b'] })),
    'bad_route',
  );
  for (const url of ['foo', 'ftp://x/', 'http://', 'http://u@x/', 'example.com:80']) {
    assert.equal(code(decide(url, host)), 'bad_route', url);
  }
});

function code(route: Route): string {
  return route.kind === 'refused' ? route.error.code : route.kind;
}
