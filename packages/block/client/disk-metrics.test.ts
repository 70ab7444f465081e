import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import { diskMetrics } from './disk-metrics.ts';

/** Values by name and label. */
function recorded(): { readonly metrics: Metrics; readonly values: Map<string, number> } {
  const values = new Map<string, number>();
  const key = (name: string, labels: object = {}) => [name, ...Object.values(labels)].join(' ');
  const metrics: Metrics = {
    counter: (name) => ({
      add: (value = 1, labels) => values.set(key(name, labels), (values.get(key(name, labels)) ?? 0) + value),
    }),
    gauge: (name) => ({
      set: (value, labels) => values.set(key(name, labels), value),
      remove: (labels) => values.delete(key(name, labels)),
    }),
    histogram: () => ({ observe() {} }),
  };
  return { metrics, values };
}

const NOTHING = {
  ...{ disks: 0, attached: 0, connections: 0, reads: 0, readBytes: 0, writes: 0, writtenBytes: 0 },
  ...{ flushes: 0, zeroes: 0, errors: 0, swaps: 0, compactions: 0 },
};

test('counters go on where a daemon that was started anew begins with nothing', () => {
  const { metrics, values } = recorded();
  const take = diskMetrics(metrics);
  take({ ...NOTHING, disks: 3, attached: 1, reads: 10, writtenBytes: 4096 });
  take({ ...NOTHING, disks: 3, attached: 2, reads: 15, writtenBytes: 8192, errors: 1 });
  take({ ...NOTHING, disks: 2, attached: 2, reads: 4 });
  assert.equal(values.get('aenv_block_requests_total read'), 19);
  assert.equal(values.get('aenv_block_bytes_total write'), 8192);
  assert.equal(values.get('aenv_block_errors_total'), 1);
  assert.equal(values.get('aenv_block_disks attached'), 2);
  assert.equal(values.get('aenv_block_disks detached'), 0);
});
