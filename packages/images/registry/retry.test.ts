import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { DEFAULT_RETRY, retryAfterMs, withRetries } from './retry.ts';

test('Retry-After is read as seconds or as a date', () => {
  const now = Date.parse('2030-01-01T00:00:00Z');
  assert.equal(retryAfterMs('120', now), 120_000);
  assert.equal(retryAfterMs('Tue, 01 Jan 2030 00:01:00 GMT', now), 60_000);
  assert.equal(retryAfterMs('Mon, 31 Dec 2029 00:00:00 GMT', now), 0);
  for (const text of [undefined, '', 'soon', '-5', '1'.repeat(30)]) assert.equal(retryAfterMs(text, now), undefined);
});

test('waits grow, are of random length, and what does not pass is not tried again', async () => {
  const waits: number[] = [];
  const clock = { now: () => 0, sleep: async (ms: number) => void waits.push(ms) };
  const options = { clock, policy: DEFAULT_RETRY };
  const failing = (code: 'registry_unavailable' | 'image_not_found') => () => Promise.reject(new AenvError(code, 'x'));
  await assert.rejects(withRetries(failing('registry_unavailable'), options), { code: 'registry_unavailable' });
  assert.equal(waits.length, DEFAULT_RETRY.attempts - 1);
  for (const [at, wait] of waits.entries()) assert.ok(wait >= 125 * 2 ** at && wait <= 250 * 2 ** at, String(wait));
  waits.length = 0;
  await assert.rejects(withRetries(failing('image_not_found'), options), { code: 'image_not_found' });
  assert.equal(waits.length, 0);
});
