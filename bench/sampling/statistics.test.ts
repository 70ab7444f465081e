import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineThrough } from './line.ts';
import { median, quantile, round, summarise } from './statistics.ts';

test('quantiles lie between the two nearest samples, whatever their order', () => {
  const samples = [40, 10, 30, 20];
  assert.equal(median(samples), 25);
  assert.equal(quantile(samples, 0), 10);
  assert.equal(quantile(samples, 1), 40);
  assert.equal(quantile(samples, 0.95), 38.5);
  assert.deepEqual(samples, [40, 10, 30, 20]);
  assert.throws(() => median([]), RangeError);
});

test('a summary names its samples', () => {
  assert.deepEqual(summarise([3, 1, 2]), { n: 3, min: 1, p50: 2, p95: 2.9, p99: 2.98, max: 3 });
});

test('values are rounded to what they are worth', () => {
  assert.deepEqual([1.23456, 45.678, 1234.56].map(round), [1.235, 45.68, 1234.6]);
});

test('a line through points lies as near to all of them as it can', () => {
  const { slope, intercept } = lineThrough([
    [0, 1],
    [1, 4],
    [2, 4],
    [3, 7],
  ]);
  assert.deepEqual([round(slope), round(intercept)], [1.8, 1.3]);
  assert.throws(() => lineThrough([[1, 2]]), RangeError);
});
