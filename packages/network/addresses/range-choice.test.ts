import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { cidr, formatCidr, overlaps, parseCidr } from './ipv4.ts';
import { chooseRange, DEFAULT_POOL, parsePool } from './range-choice.ts';

const pool = parsePool(DEFAULT_POOL);
const ranges = (...texts: string[]) =>
  texts.map((text) => {
    const range = parseCidr(text);
    assert.ok(range, text);
    return range;
  });

test('the first /20 is taken on a host that uses nothing of the pool', () => {
  assert.equal(formatCidr(chooseRange(pool, ranges('127.0.0.0/8', '192.0.2.0/24'))), '10.200.0.0/20');
});

test('ranges that the host has an address in or a route to are passed over', () => {
  assert.equal(formatCidr(chooseRange(pool, ranges('10.200.0.0/20', '10.200.31.7/32'))), '10.200.32.0/20');
  assert.equal(formatCidr(chooseRange(pool, ranges('10.200.0.0/15'))), '10.202.0.0/20');
});

test('a pool that is used up is refused with what is in the way', () => {
  assert.throws(() => chooseRange(pool, ranges('10.0.0.0/8')), {
    code: 'network_exhausted',
    message: /no free \/20 in 10\.200\.0\.0\/14: .* 10\.0\.0\.0\/8/,
  });
});

test('a pool smaller than a /20 is one range', () => {
  assert.equal(formatCidr(chooseRange(parsePool('10.9.9.0/29'), [])), '10.9.9.0/29');
  assert.throws(() => chooseRange(parsePool('10.9.9.0/29'), ranges('10.9.9.4/32')), { code: 'network_exhausted' });
});

test('a chosen range lies in the pool and touches nothing that is taken', () => {
  const taken = fc.array(
    fc
      .tuple(fc.integer({ min: pool.first, max: pool.last }), fc.integer({ min: 16, max: 32 }))
      .map(([a, p]) => cidr(a, p)),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(taken, (others) => {
      const range = chooseRange(pool, others);
      assert.ok(range.first >= pool.first && range.last <= pool.last);
      assert.ok(!others.some((other) => overlaps(range, other)));
    }),
  );
});

test('a pool that is no range, or too small for one slot, is a configuration error', () => {
  for (const text of ['', '10.200.0.0', '10.200.0.1/14', '10.200.0.0/30', '0.0.0.0/0', 'fd00::/8']) {
    assert.throws(() => parsePool(text), { code: 'config_invalid' }, text);
  }
});
