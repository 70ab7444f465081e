import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedMutex } from './keyed-mutex.ts';

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await Promise.resolve();
};

test('tasks of one key run one after the other in order, also after a failure', async () => {
  const mutex = new KeyedMutex();
  const log: string[] = [];
  let inside = 0;
  const task = (name: string, fail = false) =>
    mutex.run('a', async () => {
      assert.equal(++inside, 1);
      log.push(name);
      await turns(5);
      inside--;
      if (fail) throw new Error(name);
      return name;
    });
  const results = await Promise.allSettled([task('1'), task('2', true), task('3')]);
  assert.deepEqual(log, ['1', '2', '3']);
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.equal(mutex.size, 0);
});

test('another key does not wait', async () => {
  const mutex = new KeyedMutex();
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = mutex.run('a', () => promise);
  assert.equal(await mutex.run('b', () => 'through'), 'through');
  resolve();
  await slow;
});
