import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { printableTail } from './printable-tail.ts';
import { MAX_SERIAL_LOG, SerialLog } from './serial-log.ts';

async function logFile(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'serial-'));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, 'sandbox', 'serial.log');
}

test('the file never passes its bound and holds the newest output in order', async (t) => {
  const path = await logFile(t);
  const log = new SerialLog(path);
  let largest = 0;
  for (let round = 0; round < 40; round++) {
    const lines = Array.from({ length: 1000 }, (_, i) => `line ${round * 1000 + i} ${'.'.repeat(40)}\n`);
    await log.append(Buffer.from(lines.join('')));
    largest = Math.max(largest, (await stat(path)).size);
  }
  assert.ok(largest <= MAX_SERIAL_LOG, `${largest} bytes`);
  const numbers = (await readFile(path, 'utf8'))
    .split('\n')
    .slice(1, -1)
    .map((line) => Number(line.split(' ')[1]));
  assert.equal(numbers.at(-1), 39_999);
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => 40_000 - numbers.length + i),
  );
});

test('one piece larger than the bound is cut to its end', async (t) => {
  const path = await logFile(t);
  const log = new SerialLog(path);
  await log.append(Buffer.concat([Buffer.alloc(2 * MAX_SERIAL_LOG, 'a'), Buffer.from('\nlast words\n')]));
  assert.ok((await stat(path)).size <= MAX_SERIAL_LOG);
  assert.equal(await log.lastLines(1), 'last words');
});

test('appending goes on after a restart, and overlapping appends keep their order', async (t) => {
  const path = await logFile(t);
  await new SerialLog(path).append(Buffer.from('before\n'));
  const log = new SerialLog(path);
  await Promise.all([log.append(Buffer.from('one\n')), log.append(Buffer.from('two\n'))]);
  assert.equal(await log.lastLines(3), 'before\none\ntwo');
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test('last lines of a log that does not exist are empty', async (t) => {
  assert.equal(await new SerialLog(await logFile(t)).lastLines(3), '');
});

test('escape sequences and other control bytes do not survive', () => {
  assert.equal(
    printableTail(Buffer.from('a\r\n\x1b[31mred\x1b]0;title\x07\r\n\r\n\xff\x00\n'), 5),
    'a\n[31mred]0;title',
  );
  assert.equal(printableTail(Buffer.from('x'.repeat(1000)), 1).length, 300);
});
