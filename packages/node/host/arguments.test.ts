import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCommand, UsageError } from './arguments.ts';

test('commands are read with their options', () => {
  assert.deepEqual(parseCommand(['up']), { name: 'up', foreground: false });
  assert.deepEqual(parseCommand(['up', '--detach', '--listen', '0.0.0.0:1']), {
    ...{ name: 'up', foreground: false, listen: '0.0.0.0:1' },
  });
  assert.deepEqual(parseCommand(['up', '--foreground', '--config=c']), { name: 'up', foreground: true, config: 'c' });
  assert.deepEqual(parseCommand(['down']), { name: 'down' });
  assert.deepEqual(parseCommand(['down', '--timeout', '5']), { name: 'down', timeoutSeconds: 5 });
  assert.deepEqual(parseCommand(['doctor', '--fix', '-o', 'json']), { name: 'doctor', fix: true, json: true });
  assert.deepEqual(parseCommand(['cert']), { name: 'cert' });
  assert.deepEqual(parseCommand(['cert', '--domain', 'Some.Test', '--out', 'd']), {
    ...{ name: 'cert', domain: 'some.test', out: 'd' },
  });
  assert.deepEqual(parseCommand(['selftest', 'restore', '-o', 'json']), {
    ...{ name: 'selftest', of: 'restore', json: true },
  });
  assert.deepEqual(parseCommand(['storage', 'stat']), {
    ...{ name: 'storage', action: 'stat', json: false, all: false, dryRun: false },
  });
  assert.deepEqual(parseCommand(['storage', 'gc', '--all', '--dry-run', '--output', 'json', '--config', 'c']), {
    ...{ name: 'storage', action: 'gc', json: true, all: true, dryRun: true, config: 'c' },
  });
  assert.deepEqual(parseCommand(['doctor']), { name: 'doctor', fix: false, json: false });
});

test('help is given in every usual way', () => {
  for (const args of [
    ['help', 'up'],
    ['up', '--help'],
    ['up', '--bogus', '-h'],
  ]) {
    assert.deepEqual(parseCommand(args), { name: 'help', of: 'up' }, args.join(' '));
  }
  assert.deepEqual(parseCommand(['help']), { name: 'help' });
});

test('wrong calls are refused with the command that they were meant for', () => {
  const wrong: readonly (readonly [string[], RegExp])[] = [
    [[], /no command/],
    [['bogus'], /unknown command bogus/],
    [['up', '--bogus'], /--bogus/],
    [['up', 'extra'], /extra/],
    [['up', '--listen'], /--listen/],
    [['up', '--detach', '--foreground'], /exclude/],
    [['down', '--timeout', '0'], /whole seconds/],
    [['down', '--timeout', '1.5'], /whole seconds/],
    [['doctor', '--output', 'xml'], /table or json/],
    [['selftest', 'restore', '--output', 'xml'], /table or json/],
    [['selftest'], /one test: restore/],
    [['selftest', 'pause'], /one test: restore/],
    [['storage'], /one of stat, verify and gc/],
    [['storage', 'stat', '--all'], /--all/],
    [['storage', 'verify', '--output', 'xml'], /table or json/],
    [['cert', '--domain', 'test'], /two labels/],
    [['cert', '--domain', 'a.test/CN=x'], /two labels/],
    [['cert', '--domain', 'a.test\nx'], /two labels/],
  ];
  for (const [args, message] of wrong) {
    assert.throws(
      () => parseCommand(args),
      (error) => error instanceof UsageError && message.test(error.message),
      args.join(' '),
    );
  }
});
