import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { WatermarkPool } from './pool.ts';
import { MemorySlotMaker } from './testing/memory-slot-maker.ts';
import { describePoolContract } from './testing/pool-contract.ts';

/** A clock whose sleeps end when the test says so. */
class ManualClock implements Clock {
  readonly sleeps: { ms: number; wake: () => void }[] = [];
  now = () => 0;
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.sleeps.push({ ms, wake: resolve });
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }
  /** Ends all sleeps that have begun. */
  async pass(): Promise<void> {
    for (const sleep of this.sleeps.splice(0)) sleep.wake();
    await turn();
  }
}

function setUp(options: { capacity?: number; low?: number; high?: number } = {}) {
  const maker = new MemorySlotMaker();
  const clock = new ManualClock();
  const { capacity = 100, low = 2, high = 4 } = options;
  const pool = new WatermarkPool({ maker, capacity, low, high, clock, log: silentLogger, metrics: silentMetrics });
  return { maker, clock, pool };
}

describePoolContract('watermarks, slots in memory', async () => {
  const { pool } = setUp({ capacity: 5 });
  pool.start();
  return { pool, capacity: 5 };
});

test('fills to the high mark, and again when nobody has asked for a slot for a while', async () => {
  const { pool, maker, clock } = setUp();
  pool.start();
  await pool.settled();
  assert.deepEqual(pool.stats(), { ready: 4, inUse: 0 });
  assert.equal(maker.mostAtOnce, 2);
  await pool.acquire({ internet: true });
  await pool.acquire({ internet: true });
  await pool.settled();
  assert.deepEqual(pool.stats(), { ready: 2, inUse: 2 });
  // The first sleep began before the second one was asked for.
  await clock.pass();
  await clock.pass();
  await pool.settled();
  assert.deepEqual(pool.stats(), { ready: 4, inUse: 2 });
  await pool.close();
});

test('while slots are asked for, the low mark is kept, one build at a time', async () => {
  const { pool, maker } = setUp();
  pool.start();
  await pool.settled();
  maker.mostAtOnce = 0;
  for (let taken = 1; taken <= 6; taken++) {
    await pool.acquire({ internet: true });
    await pool.settled();
    assert.equal(pool.stats().ready, Math.max(4 - taken, 2));
  }
  assert.equal(maker.mostAtOnce, 1);
  await pool.close();
});

test('who waits is served at once, by two builds at a time', async () => {
  const { pool, maker } = setUp({ low: 0, high: 2 });
  await Promise.all([1, 2, 3, 4].map(() => pool.acquire({ internet: true })));
  assert.equal(maker.mostAtOnce, 2);
  assert.deepEqual(pool.stats(), { ready: 0, inUse: 4 });
  await pool.close();
});

test('those who wait get slots in the order in which they asked', async () => {
  const { pool } = setUp({ low: 0, high: 0 });
  const slots = await Promise.all([1, 2, 3, 4].map(() => pool.acquire({ internet: true })));
  assert.deepEqual(
    slots.map((slot) => slot.index),
    [1, 2, 3, 4],
  );
  await pool.close();
});

test('a failed build is told to who waits, leaves no index taken, and building ahead pauses', async () => {
  const { pool, maker, clock } = setUp({ capacity: 2 });
  maker.buildError = new Error('no netns');
  await assert.rejects(pool.acquire({ internet: true }), /no netns/);
  await pool.settled();
  const paused = clock.sleeps.length;
  assert.ok(paused >= 1);
  await turn();
  assert.equal(maker.building, 0);
  maker.buildError = undefined;
  await clock.pass();
  await pool.settled();
  assert.equal(pool.stats().ready, 2);
  await pool.close();
});

test('who gives up waiting leaves the slot to the next one', async () => {
  const { pool, maker } = setUp({ low: 0, high: 0 });
  const gate = Promise.withResolvers<void>();
  maker.gate = gate.promise;
  const gone = new AbortController();
  const first = pool.acquire({ internet: true }, gone.signal);
  const second = pool.acquire({ internet: true });
  gone.abort(new Error('client gone'));
  await assert.rejects(first, /client gone/);
  gate.resolve();
  await second;
  await pool.settled();
  assert.equal(pool.stats().inUse, 1);
  await pool.close();
  assert.equal(maker.existing.size, 0);
});

test('who goes while the policy is set leaves nothing behind', async () => {
  const { pool, maker } = setUp({ low: 0, high: 0 });
  const gate = Promise.withResolvers<void>();
  maker.applyGate = gate.promise;
  const gone = new AbortController();
  const slot = pool.acquire({ internet: false }, gone.signal);
  await pool.settled();
  gone.abort(new Error('client gone'));
  gate.resolve();
  await assert.rejects(slot, /client gone/);
  assert.equal(maker.existing.size, 0);
  await pool.close();
});

test('policy changes of one slot take effect one after the other, the last one asked for wins', async () => {
  const { pool, maker } = setUp();
  const slot = await pool.acquire({ internet: true });
  const asked = [false, true, false, true, false].map((internet) => pool.setPolicy(slot, { internet }));
  await Promise.all(asked);
  assert.deepEqual(maker.existing.get(slot), { internet: false });
  assert.deepEqual(
    maker.applied.map((policy) => policy.internet),
    [false, true, false, true, false],
  );
  assert.deepEqual(pool.policyOf(slot.hostAddress), { internet: false });
  await pool.close();
});

test('while rules change, the slot counts as closed', async () => {
  const { pool, maker } = setUp();
  const slot = await pool.acquire({ internet: true });
  const gate = Promise.withResolvers<void>();
  maker.applyGate = gate.promise;
  const change = pool.setPolicy(slot, { internet: false });
  await turn();
  assert.deepEqual(pool.policyOf(slot.hostAddress), { internet: false });
  gate.resolve();
  await change;
  await pool.close();
});

test('a slot is known by its address only while it is in use', async () => {
  const { pool } = setUp();
  const slot = await pool.acquire({ internet: true });
  assert.deepEqual(pool.policyOf(slot.hostAddress), { internet: true });
  assert.equal(pool.policyOf('127.0.1.77'), undefined);
  const released = pool.release(slot);
  assert.equal(pool.policyOf(slot.hostAddress), undefined);
  await released;
  await pool.close();
});

test('a slot that could not be removed stays on the books, and its release can be repeated', async () => {
  const { pool, maker } = setUp({ capacity: 1, low: 0, high: 0 });
  const slot = await pool.acquire({ internet: true });
  maker.destroyError = new Error('busy');
  await assert.rejects(pool.release(slot), /busy/);
  await assert.rejects(pool.acquire({ internet: true }), { code: 'network_exhausted' });
  maker.destroyError = undefined;
  await pool.release(slot);
  assert.equal((await pool.acquire({ internet: true })).index, 1);
  await pool.close();
});

test('a copy of a slot is refused, because it cannot be told from an earlier user of the address', async () => {
  const { pool } = setUp();
  const slot = await pool.acquire({ internet: true });
  await assert.rejects(pool.release({ ...slot }), { code: 'internal' });
  assert.equal(pool.stats().inUse, 1);
  await pool.close();
});

test('close waits for builds under way, fails those who wait and removes all slots', async () => {
  const { pool, maker } = setUp();
  pool.start();
  await pool.settled();
  await pool.acquire({ internet: true });
  const gate = Promise.withResolvers<void>();
  maker.gate = gate.promise;
  const rest = Array.from({ length: 5 }, () => pool.acquire({ internet: true }));
  const outcomes = Promise.allSettled(rest);
  const closing = pool.close();
  gate.resolve();
  await closing;
  const failed = (await outcomes).filter((outcome) => outcome.status === 'rejected');
  assert.ok(failed.length >= 2);
  for (const outcome of failed) assert.equal(outcome.reason.code, 'shutting_down');
  assert.equal(maker.existing.size, 0);
});
