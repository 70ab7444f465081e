import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseDecimal, parseNumber } from './numbers.ts';

test('octal fields end with a blank or a zero byte, or fill their width', () => {
  const read = (text: string) => parseNumber(Buffer.from(text, 'latin1'));
  assert.equal(read('0000644\0'), 0o644);
  assert.equal(read('   644 \0'), 0o644);
  assert.equal(read('77777777'), 0o77777777);
  assert.equal(read('\0\0\0\0'), 0);
  for (const bad of ['0000648\0', '-1      ', '0x10\0', '6 44\0']) assert.equal(read(bad), undefined, bad);
});

test('base-256 fields hold any safe integer, negative ones too', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      const field = Buffer.alloc(12, value < 0 ? 0xff : 0);
      field.writeBigInt64BE(BigInt(value), 4);
      field[0] = (field[0] ?? 0) | 0x80;
      assert.equal(parseNumber(field), value);
    }),
  );
  assert.equal(parseNumber(Buffer.from('80ffffffffffffffffffffff', 'hex')), undefined);
});

test('decimal numbers are digits with an optional sign and fraction', () => {
  assert.equal(parseDecimal('1700000000.25'), 1700000000.25);
  assert.equal(parseDecimal('-3'), -3);
  for (const bad of ['', '1e9', '0x1', ' 1', '1,5', 'NaN', '9'.repeat(20)])
    assert.equal(parseDecimal(bad), undefined, bad);
});
