import assert from 'node:assert/strict';
import test from 'node:test';
import { parsePool } from '../addresses/range-choice.ts';
import { deniedRanges } from './denied-ranges.ts';

const own = parsePool('198.18.0.0/20');

test('private, link-local and special ranges, the own range and the additions are denied', () => {
  const denied = deniedRanges(own, ['192.0.2.7', '203.0.113.9/24', '10.0.0.0/8', '255.255.255.255/32']);
  for (const range of ['10.0.0.0/8', '169.254.0.0/16', '198.18.0.0/20', '192.0.2.7/32', '203.0.113.0/24']) {
    assert.ok(denied.includes(range), range);
  }
  assert.equal(new Set(denied).size, denied.length);
});

test('an addition that is no range is a configuration error and never becomes a rule', () => {
  for (const text of ['', 'example.com', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/8 } accept', '::/0']) {
    assert.throws(() => deniedRanges(own, [text]), { code: 'config_invalid' }, text);
  }
});
