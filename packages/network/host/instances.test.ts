import assert from 'node:assert/strict';
import test from 'node:test';
import { recordsOfChains } from './instances.ts';

const chain = (family: string, table: string, name: string) => ({ chain: { family, table, name, handle: 1 } });

test('an instance is read from the chains of its table', () => {
  const records = recordsOfChains([
    { metainfo: { version: '1.0.6' } },
    chain('inet', 'aenv_0a1b2', 'home_1'),
    chain('inet', 'aenv_0a1b2', 'ip_forward_was_off'),
    chain('inet', 'aenv_fffff', 'guard_input'),
    chain('ip', 'aenv_33333', 'home_2'),
    chain('inet', 'aenv_something', 'home_3'),
    chain('ip', 'filter', 'FORWARD'),
  ]);
  assert.deepEqual(records, [
    { tag: '0a1b2', owner: 'home_1', forwardingWasOff: true },
    { tag: 'fffff', owner: undefined, forwardingWasOff: false },
  ]);
});
