import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from './clock.ts';

test('an aborted sleep rejects with the reason itself, before and during the wait', async () => {
  const reason = new Error('shutdown');
  await assert.rejects(systemClock.sleep(10_000, AbortSignal.abort(reason)), (error) => error === reason);
  const abort = new AbortController();
  const sleeping = systemClock.sleep(10_000, abort.signal);
  abort.abort(reason);
  await assert.rejects(sleeping, (error) => error === reason);
});
