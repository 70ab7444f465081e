import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '../clock/clock.ts';
import { childEvent } from '../testing/child-event.ts';
import { FileLock } from './file-lock.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aenv-lock-'));
});
after(() => rm(folder, { recursive: true, force: true }));

test('many have it together, or one alone, who is waited for', async () => {
  const lock = new FileLock(join(folder, 'made', 'one.lock'), systemClock);
  const [first, second] = [await lock.shared(), await lock.shared()];
  assert.equal(await lock.exclusive(0), undefined);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  assert.equal(await lock.exclusive(20), undefined);
  second[Symbol.dispose]();
  const alone = await lock.exclusive(0);
  assert.ok(alone !== undefined);
  let isTaken = false;
  const waiting = lock.shared().then((hold) => {
    isTaken = true;
    return hold;
  });
  await systemClock.sleep(30);
  assert.equal(isTaken, false);
  await assert.rejects(lock.shared(AbortSignal.timeout(1)), /timeout/i);
  alone[Symbol.dispose]();
  (await waiting)[Symbol.dispose]();
  assert.deepEqual(await readdir(join(folder, 'made')), ['one.lock']);
});

test('it is free again when the process that had it was killed', async () => {
  const path = join(folder, 'killed.lock');
  const program = `
    import { FileLock } from ${JSON.stringify(new URL('file-lock.ts', import.meta.url).href)};
    globalThis.hold = await new FileLock(${JSON.stringify(path)}, { sleep() {} }).shared();
    console.log('held');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
  try {
    await childEvent(child, child.stdout, 'data');
    const lock = new FileLock(path, systemClock);
    assert.equal(await lock.exclusive(0), undefined);
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
    const hold = await lock.exclusive(0);
    assert.ok(hold !== undefined);
    hold[Symbol.dispose]();
  } finally {
    child.kill('SIGKILL');
  }
});
