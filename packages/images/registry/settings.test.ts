import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registrySettings } from './settings.ts';

const EMPTY = { search: [], insecure: [], mirrors: [], ca: [] };

test('hosts are brought to one form, and mirrors keep their order', () => {
  const settings = registrySettings({
    search: ['index.docker.io', 'Quay.io'],
    allowed: ['docker.io'],
    insecure: ['LOCALHOST:5000', '[::1]:5000'],
    mirrors: ['docker.io=m1.example', 'quay.io=m.example', 'docker.io=m2.example:8443/proxy/hub'],
    ca: ['corp.example:5000=/etc/ca=1.pem'],
  });
  assert.deepEqual(settings.search, ['docker.io', 'quay.io']);
  assert.deepEqual(settings.allowed, new Set(['docker.io']));
  assert.deepEqual(settings.insecure, new Set(['localhost:5000', '[::1]:5000']));
  assert.deepEqual(settings.mirrors.get('docker.io'), [
    { host: 'm1.example', prefix: '' },
    { host: 'm2.example:8443', prefix: 'proxy/hub' },
  ]);
  assert.deepEqual(settings.authorities, new Map([['corp.example:5000', '/etc/ca=1.pem']]));
  assert.equal(registrySettings(EMPTY).allowed, undefined);
});

test('a wrong entry is named with its key', () => {
  const wrong: [object, RegExp][] = [
    [{ search: ['http://docker.io'] }, /registry\.search: "http:\/\/docker.io"/],
    [{ insecure: ['a b'] }, /registry\.insecure/],
    [{ mirrors: ['docker.io'] }, /registry\.mirrors.*HOST=VALUE/],
    [{ mirrors: ['docker.io=https://m.example'] }, /registry\.mirrors/],
    [{ mirrors: ['docker.io=m.example/Upper'] }, /registry\.mirrors.*prefix/],
    [{ ca: ['=x'] }, /registry\.ca/],
    [{ ca: ['host:99999=x'] }, /registry\.ca/],
    [{ allowed: [''] }, /registry\.allowed/],
  ];
  for (const [change, message] of wrong) {
    assert.throws(() => registrySettings({ ...EMPTY, ...change }), { code: 'config_invalid', message });
  }
});
