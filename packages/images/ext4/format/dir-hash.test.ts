import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { dirHash } from './dir-hash.ts';

const SEED = '12345678-9abc-4def-8123-456789abcdef';

test('names have the hashes that debugfs(8) gives them', async () => {
  const names = ['a', 'ab', 'abc', 'abcd', 'abcde', 'x'.repeat(31), 'y'.repeat(32), 'z'.repeat(33), 'n'.repeat(255)];
  names.push('usr', '.profile', 'libstdc++.so.6.0.30', 'größe', 'ÿ'.repeat(40));
  // Number 4 is half MD4, unsigned; the program has no name for it.
  const commands = names.map((name) => `dx_hash -h 4 -s ${SEED} ${name}\n`);
  const { stdout } = await run(['debugfs', '-f', '-'], { input: commands.join('') });
  const expected = [...stdout.matchAll(/is 0x([0-9a-f]{1,8})/g)].map(([, hex = '']) => Number.parseInt(hex, 16));
  const seed = Buffer.from(SEED.replaceAll('-', ''), 'hex');
  const found = names.map((name) => dirHash(Buffer.from(name, 'utf8').toString('latin1'), seed));
  assert.deepEqual(found, expected);
});
