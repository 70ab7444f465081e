import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseStatus, settledRss } from './rss.ts';

test('resident memory is read in MiB', () => {
  const text = 'Name:\tnode\nVmRSS:\t   98304 kB\nRssAnon:\t   40960 kB\nRssFile:\t   57344 kB\n';
  assert.deepEqual(parseStatus(text), { total: 96, anonymous: 40 });
  assert.throws(() => parseStatus('Name:\tnode\nState:\tZ (zombie)\n'), /has ended/);
});

test('waiting for rest ends with the signal', async () => {
  await assert.rejects(settledRss(process.pid, AbortSignal.timeout(50)), { name: 'AbortError' });
});
