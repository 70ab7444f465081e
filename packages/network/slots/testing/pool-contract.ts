import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { SlotPool } from '../contract.ts';

export interface PoolUnderTest {
  readonly pool: SlotPool;
  /** the most slots in use at one time */
  readonly capacity: number;
}

/** What every SlotPool does, real or fake. `make` gives a new pool for every test, which the test closes. */
export function describePoolContract(name: string, make: () => Promise<PoolUnderTest>): void {
  const withPool = (work: (subject: PoolUnderTest) => Promise<void>) => async () => {
    const subject = await make();
    try {
      await work(subject);
    } finally {
      await subject.pool.close();
    }
  };
  const open = { internet: true };

  describe(`slot pool: ${name}`, () => {
    it(
      'gives slots that share no index, namespace entry or address',
      withPool(async ({ pool }) => {
        const slots = await Promise.all([pool.acquire(open), pool.acquire({ internet: false }), pool.acquire(open)]);
        assert.equal(new Set(slots.map((slot) => slot.index)).size, 3);
        assert.equal(new Set(slots.map((slot) => slot.hostAddress)).size, 3);
        assert.equal(pool.stats().inUse, 3);
      }),
    );

    it(
      'does not use an address again right after its release',
      withPool(async ({ pool }) => {
        const first = await pool.acquire(open);
        await pool.release(first);
        const second = await pool.acquire(open);
        assert.notEqual(second.hostAddress, first.hostAddress);
      }),
    );

    it(
      'releases once, however often it is asked',
      withPool(async ({ pool }) => {
        const slot = await pool.acquire(open);
        await Promise.all([pool.release(slot), pool.release(slot)]);
        await pool.release(slot);
        assert.equal(pool.stats().inUse, 0);
        await assert.rejects(pool.setPolicy(slot, open), { code: 'sandbox_not_running' });
      }),
    );

    it(
      'says when all slots are in use, and goes on when one is free again',
      withPool(async ({ pool, capacity }) => {
        const slots: NetworkSlot[] = [];
        for (let i = 0; i < capacity; i++) slots.push(await pool.acquire(open));
        await assert.rejects(pool.acquire(open), { code: 'network_exhausted' });
        const [one] = slots;
        assert.ok(one);
        await pool.release(one);
        await pool.acquire(open);
        assert.equal(pool.stats().inUse, capacity);
      }),
    );

    it(
      'gives nothing to a caller that has gone',
      withPool(async ({ pool }) => {
        const reason = new Error('client gone');
        await assert.rejects(pool.acquire(open, AbortSignal.abort(reason)), reason);
        assert.equal(pool.stats().inUse, 0);
      }),
    );

    it(
      'gives nothing after it was closed, and closes again without harm',
      withPool(async ({ pool }) => {
        await pool.acquire(open);
        await pool.close();
        assert.equal(pool.stats().inUse, 0);
        await assert.rejects(pool.acquire(open), { code: 'shutting_down' });
      }),
    );
  });
}
