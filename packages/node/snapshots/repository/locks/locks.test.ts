import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as breathe } from 'node:timers/promises';
import { SharedLock } from './shared-lock.ts';
import { SingleFlight } from './single-flight.ts';
import { Uses } from './uses.ts';

test('many share, one excludes all, and those that come later wait behind it; failures hold up nobody', async () => {
  const lock = new SharedLock();
  const events: string[] = [];
  const task =
    (name: string, fails = false) =>
    async () => {
      events.push(`+${name}`);
      await breathe();
      events.push(`-${name}`);
      if (fails) throw new Error(name);
    };
  const results = await Promise.allSettled([
    lock.shared(task('a')),
    lock.shared(task('b', true)),
    lock.exclusive(task('X', true)),
    lock.exclusive(task('Y')),
    lock.shared(task('c')),
    lock.shared(task('d')),
  ]);
  assert.deepEqual(events, ['+a', '+b', '-a', '-b', '+X', '-X', '+Y', '-Y', '+c', '+d', '-c', '-d']);
  assert.deepEqual(
    results.map(({ status }) => status === 'rejected'),
    [false, true, true, false, false, false],
  );
});

test('work is done once for all who ask meanwhile, and again afterwards', async () => {
  const flight = new SingleFlight<number>();
  let runs = 0;
  const work = async () => {
    await breathe();
    return ++runs;
  };
  assert.deepEqual(await Promise.all([flight.run('a', work), flight.run('a', work), flight.run('b', work)]), [1, 1, 2]);
  assert.equal(await flight.run('a', work), 3);
  const failing = flight.run('a', async () => {
    throw new Error('no');
  });
  await flight.idle('a');
  await assert.rejects(failing, /no/);
});

test('the last use is told as such, once', () => {
  const uses = new Uses();
  const [one, two] = [uses.take('a'), uses.take('a')];
  assert.deepEqual([one(), one(), uses.has('a')], [false, false, true]);
  assert.deepEqual([...uses.keys()], ['a']);
  assert.deepEqual([two(), two(), uses.has('a')], [true, false, false]);
});
