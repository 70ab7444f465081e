import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConsoleTail } from './console-tail.ts';

test('lines come once, whole, and without what would move a terminal', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'aenv-console-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'console.log');
  const tail = new ConsoleTail(path);
  assert.deepEqual(await tail.read(), [], 'no file yet');
  writeFileSync(path, '\u001b[1mfirst\u001b[0m\r\n\r\nsec');
  assert.deepEqual(await tail.read(), ['first']);
  assert.deepEqual(await tail.read(), []);
  appendFileSync(path, 'ond\u0007\n');
  assert.deepEqual(await tail.read(), ['second']);
  appendFileSync(path, `${'flood of lines\n'.repeat(10_000)}last\n`);
  const lines = await tail.read();
  assert.ok(lines.length < 1200, `${lines.length} lines`);
  assert.ok(lines.slice(0, -1).every((line) => line === 'flood of lines'));
  assert.equal(lines.at(-1), 'last');
  appendFileSync(path, 'x'.repeat(10_000));
  await tail.read();
  appendFileSync(path, '\n');
  assert.ok((await tail.read()).join('').length <= 1000);
});
