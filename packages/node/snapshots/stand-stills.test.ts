import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StandStills } from './stand-stills.ts';

test('what waits for no stand-still waits for all of them, and for failed ones no longer', async () => {
  const standStills = new StandStills();
  await standStills.none();
  const [first, second] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  const done: string[] = [];
  const one = standStills.during(() => first.promise);
  const two = standStills.during(() => second.promise);
  const waiting = standStills.none().then(() => done.push('none'));
  first.resolve(1);
  assert.equal(await one, 1);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(done, []);
  second.reject(new Error('no'));
  await assert.rejects(two);
  await waiting;
  assert.deepEqual(done, ['none']);
});
