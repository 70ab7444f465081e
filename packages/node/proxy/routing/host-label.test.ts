import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseHostLabel } from './host-label.ts';

const sandbox = (port: number, sandboxId: string) => ({ kind: 'sandbox', port, sandboxId });

test('a label of port and id names a sandbox under any domain, in any case, with or without a port behind it', () => {
  assert.deepEqual(parseHostLabel('3000-iabc123.example.com'), sandbox(3000, 'iabc123'));
  assert.deepEqual(parseHostLabel('49983-iabc.localhost:8000'), sandbox(49983, 'iabc'));
  assert.deepEqual(parseHostLabel('80-IABC.Example.COM'), sandbox(80, 'iabc'));
  assert.deepEqual(parseHostLabel('65535-i.a.'), sandbox(65535, 'i'));
});

test('the client id of the old form is dropped, more dashes are malformed', () => {
  assert.deepEqual(parseHostLabel('3000-iabc-6532622b.example.com'), sandbox(3000, 'iabc'));
  assert.equal(parseHostLabel('3000-iabc-1-2.example.com').kind, 'malformed');
});

test('a port that is none and an id that is none are malformed', () => {
  for (const host of ['0-ia.x', '65536-ia.x', '08-ia.x', '8x-ia.x', '99999999-ia.x', '80-.x', '80-i_a.x', '80--ia.x']) {
    assert.equal(parseHostLabel(host).kind, 'malformed', host);
  }
});

test('addresses, undotted names and other names are no label', () => {
  for (const host of [
    '',
    '127.0.0.1',
    '127.0.0.1:8000',
    '[::1]:8000',
    '[fe80::1-2.3]',
    'localhost:8000',
    '3000-iabc',
    '3000-iabc.',
    'my-host.example.com',
    'api.example.com',
    '.x',
    '1.2.3.4.5',
  ]) {
    assert.equal(parseHostLabel(host).kind, 'none', host);
  }
});

test('whatever is sent, the result is one of the three, and a sandbox has a possible port and id', () => {
  const host = fc.oneof(
    fc.string(),
    fc.tuple(fc.string(), fc.string()).map(([a, b]) => `${a}-${b}.x`),
    fc.tuple(fc.integer(), fc.string()).map(([a, b]) => `${a}-${b}.x`),
  );
  fc.assert(
    fc.property(host, (text) => {
      const label = parseHostLabel(text);
      if (label.kind !== 'sandbox') return;
      assert.ok(label.port >= 1 && label.port <= 65535);
      assert.match(label.sandboxId, /^[a-z0-9]+$/);
    }),
  );
});
