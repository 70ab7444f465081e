import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseArguments } from './arguments.ts';

test('names choose, options shorten and list', () => {
  assert.deepEqual(parseArguments(['boot', '--quick'], ['boot', 'proxy']), {
    names: ['boot'],
    quick: true,
    list: false,
  });
  assert.deepEqual(parseArguments([], ['boot']), { names: [], quick: false, list: false });
});

test('an unknown name or option is refused by name', () => {
  assert.throws(() => parseArguments(['bot'], ['boot']), /no measurement 'bot'; there are: boot/);
  assert.throws(() => parseArguments(['--fast'], ['boot']), /--fast/);
});
