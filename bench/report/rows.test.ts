import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ratioRow, row, seriesRow } from './rows.ts';

test('a goal is met or missed, and a row without one is ok', () => {
  assert.deepEqual(row('a/b', 1.2, 'x', { atMost: 1.25 }), {
    name: 'a/b',
    value: 1.2,
    unit: 'x',
    goal: '<= 1.25',
    ok: true,
  });
  assert.equal(row('a/b', 1.26, 'x', { atMost: 1.25 }).ok, false);
  assert.equal(row('a/b', 0.4, 'x', { atLeast: 0.5 }).ok, false);
  assert.deepEqual([row('a/b', 7, 'ms').goal, row('a/b', 7, 'ms').ok], [null, true]);
});

test('a value that only rounding makes good is not good', () => {
  const { value, ok } = row('a/b', 1.2501, 'x', { atMost: 1.25 });
  assert.deepEqual([value, ok], [1.25, false]);
});

test('a ratio is that of the medians, and tells both series', () => {
  const made = ratioRow('a/b', { ours: [30, 10, 20], bare: [10, 10, 100] });
  assert.equal(made.value, 2);
  assert.deepEqual(made.detail?.bare, { n: 3, min: 10, p50: 10, p95: 91, p99: 98.2, max: 100 });
  assert.throws(() => ratioRow('a/b', { ours: [1] }), RangeError);
});

test('a ratio below nothing meets no goal: what it is of was lost in the noise', () => {
  assert.equal(ratioRow('a/b', { ours: [-3], bare: [2] }, { atMost: 1.25 }).ok, false);
  assert.equal(row('a/b', -0.5, 'MiB', { atMost: 3 }).ok, true);
});

test('a series is told by its median', () => {
  const made = seriesRow('a/b', [3, 1, 2], 'ms', undefined, { note: 'x' });
  assert.deepEqual([made.value, made.detail?.n, made.detail?.note], [2, 3, 'x']);
});
