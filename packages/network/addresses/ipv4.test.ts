import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { cidr, formatCidr, formatIpv4, overlaps, parseCidr, parseIpv4 } from './ipv4.ts';

const address = fc.integer({ min: 0, max: 0xffff_ffff });
const range = fc.tuple(address, fc.integer({ min: 0, max: 32 })).map(([base, prefix]) => cidr(base, prefix));

test('an address is read as it is written', () => {
  fc.assert(fc.property(address, (value) => parseIpv4(formatIpv4(value)) === value));
  assert.equal(formatIpv4(0xffff_ffff), '255.255.255.255');
});

test('a range is read as it is written, up to the last address there is', () => {
  fc.assert(
    fc.property(range, (value) => {
      assert.deepEqual(parseCidr(formatCidr(value)), value);
    }),
  );
  assert.deepEqual(parseCidr('255.255.255.255/32'), { first: 0xffff_ffff, last: 0xffff_ffff, prefix: 32 });
  assert.deepEqual(parseCidr('0.0.0.0/0'), { first: 0, last: 0xffff_ffff, prefix: 0 });
  assert.equal(parseCidr('192.0.2.1')?.prefix, 32);
});

test('what is not exactly an address or a range is refused', () => {
  for (const text of ['', '1.2.3', '1.2.3.4.5', '1.2.3.256', '01.2.3.4', '1.2.3.-4', ' 1.2.3.4', '1.2.3.0x4', '::1']) {
    assert.equal(parseIpv4(text), undefined, text);
  }
  for (const text of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.1/8', '10.0.0.0/-1', '/8']) {
    assert.equal(parseCidr(text), undefined, text);
  }
});

test('ranges overlap when one address is in both', () => {
  fc.assert(
    fc.property(range, range, (a, b) => {
      const shared = Math.max(a.first, b.first) <= Math.min(a.last, b.last);
      assert.equal(overlaps(a, b), shared);
      assert.equal(overlaps(b, a), shared);
    }),
  );
});
