import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shellExitCode } from '../terminal/exec-session.ts';
import { CliError } from './cli-error.ts';
import { chooseFormat, duration } from './format.ts';
import { formatTable, printable } from './table.ts';

test('columns line up, and control characters of others are shown, not executed', () => {
  assert.equal(formatTable(['A', 'LONG'], [['xyz', '1']]), 'A    LONG\nxyz  1');
  assert.equal(printable('a\x1b[31m\n'), 'a\\x1b[31m\\x0a');
});

test('a table on a terminal, JSON in a pipe, and what was asked for', () => {
  assert.equal(chooseFormat(undefined, true), 'table');
  assert.equal(chooseFormat(undefined, false), 'json');
  assert.equal(chooseFormat('json', true), 'json');
  assert.throws(() => chooseFormat('xml', true), CliError);
});

test('durations in two units at most', () => {
  assert.deepEqual([0, 59_400, 125_000, 7_260_000].map(duration), ['-', '59s', '2m 5s', '2h 1m']);
});

test('an exit code is its low byte, a signal is 128 + n', () => {
  assert.equal(shellExitCode({ code: 300 }), 44);
  assert.equal(shellExitCode({ code: -1, signal: 'killed' }), 137);
  assert.equal(shellExitCode({ code: -1, signal: 'terminated' }), 143);
});
