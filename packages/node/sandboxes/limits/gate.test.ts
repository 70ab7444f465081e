import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { Gate } from './gate.ts';

const never = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('runs at most `concurrency` at once and serves waiters in order', async () => {
  const gate = new Gate({ concurrency: 2, maxQueue: 10 });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const tasks = [0, 1, 2, 3, 4].map((i) =>
    gate.run(async () => {
      begun.push(i);
      await new Promise<void>((resolve) => ends.push(resolve));
    }, never),
  );
  await settle();
  assert.deepEqual(begun, [0, 1]);
  assert.equal(gate.waiting, 3);
  for (let i = 0; i < 5; i++) {
    ends[i]?.();
    await settle();
  }
  await Promise.all(tasks);
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
  assert.equal(await gate.run(async () => 'free again', never), 'free again');
});

test('a full queue refuses at once with capacity_exhausted', async () => {
  const gate = new Gate({ concurrency: 1, maxQueue: 1 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const running = gate.run(() => promise, never);
  const waiting = gate.run(async () => {}, never);
  await assert.rejects(
    gate.run(async () => {}, never),
    (error) => error instanceof AenvError && error.code === 'capacity_exhausted',
  );
  resolve();
  await Promise.all([running, waiting]);
});

test('an aborted waiter leaves the queue; a failed task gives its place on', async () => {
  const gate = new Gate({ concurrency: 1, maxQueue: 5 });
  const { promise, reject } = Promise.withResolvers<void>();
  const failing = gate.run(() => promise, never);
  const abort = new AbortController();
  const aborted = gate.run(async () => assert.fail('must not run'), abort.signal);
  const last = gate.run(async () => 'last', never);
  abort.abort(new Error('changed my mind'));
  await assert.rejects(aborted, /changed my mind/);
  reject(new Error('boot'));
  await assert.rejects(failing, /boot/);
  assert.equal(await last, 'last');
});
