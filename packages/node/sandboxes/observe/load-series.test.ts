import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadSample } from './contract.ts';
import { LoadSeries } from './load-series.ts';

const sample = (at: number): LoadSample => ({
  at,
  cpuCount: 2,
  cpuUsedPct: 12.5,
  memUsed: 3 * 2 ** 40,
  memTotal: 4,
  memCache: 5,
  diskUsed: 6,
  diskTotal: 7,
});

test('samples come back as they were, in order, however the ring has grown and turned', () => {
  for (const capacity of [1, 2, 15, 16, 17, 40, 100]) {
    const series = new LoadSeries(capacity);
    assert.equal(series.latest(), undefined);
    for (let at = 1; at <= 90; at++) {
      series.add(sample(at));
      const first = Math.max(1, at - capacity + 1);
      const expected = Array.from({ length: at - first + 1 }, (_, index) => first + index);
      assert.deepEqual(
        series.between().map((one) => one.at),
        expected,
        `${capacity} places, ${at} samples`,
      );
      assert.deepEqual(series.latest(), sample(at));
    }
  }
});

test('a range takes both of its ends', () => {
  const series = new LoadSeries(10);
  for (let at = 0; at < 10; at++) series.add(sample(at));
  assert.deepEqual(series.between(3, 5), [sample(3), sample(4), sample(5)]);
  assert.deepEqual(series.between(20), []);
});
