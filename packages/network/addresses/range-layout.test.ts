import assert from 'node:assert/strict';
import test from 'node:test';
import { parsePool } from './range-choice.ts';
import { dnsAddressOf, slotAddresses, slotCapacity, uidOffset } from './range-layout.ts';

const range = parsePool('10.200.16.0/20');

test('no address of a range serves two purposes', () => {
  const seen = new Set([dnsAddressOf(range)]);
  for (let index = 1; index <= slotCapacity(range); index++) {
    const { gateway, slot } = slotAddresses(range, index);
    seen.add(gateway).add(slot);
  }
  assert.equal(seen.size, 1 + 2 * 1023);
});

test('the first and the last slot of a range', () => {
  assert.equal(dnsAddressOf(range), '10.200.16.1');
  assert.deepEqual(slotAddresses(range, 1), { gateway: '10.200.16.5', slot: '10.200.16.6' });
  assert.deepEqual(slotAddresses(range, 1023), { gateway: '10.200.31.253', slot: '10.200.31.254' });
});

test('an index outside the range is refused', () => {
  for (const index of [0, 1024, -1, 1.5, Number.NaN]) assert.throws(() => slotAddresses(range, index), RangeError);
});

test('slots of neighbouring ranges count on without a clash', () => {
  const pool = parsePool('10.200.0.0/14');
  assert.equal(uidOffset(pool, parsePool('10.200.0.0/20')), 0);
  assert.ok(uidOffset(pool, range) > slotCapacity(parsePool('10.200.0.0/20')));
});
