import assert from 'node:assert/strict';
import { test } from 'node:test';
import { row } from './rows.ts';
import { table } from './table.ts';

test('columns line up, and a missed goal stands out', () => {
  const text = table([row('boot/a', 1.5, 'x', { atMost: 1.25 }), row('boot/long name', 1234, 'ms')]);
  assert.deepEqual(text.split('\n'), [
    'name            value  unit  goal     ok',
    'boot/a            1.5  x     <= 1.25  MISSED',
    'boot/long name   1234  ms',
  ]);
});
