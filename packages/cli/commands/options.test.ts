import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutSeparator } from './exec.ts';
import { parseSeconds, parseWhole } from './options.ts';

test('seconds and counts are digits: what only a programming language takes for a number is refused', () => {
  assert.deepEqual([parseSeconds('300'), parseWhole('007')], [300, 7]);
  for (const text of ['0', '-1', '0x10', '1e3', '1.0', ' 5', '', '9'.repeat(30)]) {
    assert.throws(() => parseSeconds(text), /whole seconds above 0/, text);
    assert.throws(() => parseWhole(text), /whole number above 0/, text);
  }
});

test('one -- may stand between the sandbox and the command; those of the command are its own', () => {
  assert.deepEqual(withoutSeparator(['--', 'sh', '-c', 'x']), ['sh', '-c', 'x']);
  assert.deepEqual(withoutSeparator(['git', 'log', '--', 'f']), ['git', 'log', '--', 'f']);
  assert.deepEqual(withoutSeparator(['--', '--']), ['--']);
});
