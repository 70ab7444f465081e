import assert from 'node:assert/strict';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { CREATE, fixture } from '../testing/fixture.ts';
import { SerialLogs } from './serial-logs.ts';

test('the console of a killed sandbox goes with it, that of a lost one stays', async () => {
  await using f = await fixture();
  await mkdir(f.serialDir);
  const start = async () => {
    const { sandboxId } = await f.sandboxes.create(CREATE);
    const incarnation = f.ledger.sandboxes.get(sandboxId)?.incarnation ?? '';
    await writeFile(join(f.serialDir, `${incarnation}.log`), 'booted');
    return { sandboxId, incarnation };
  };
  await f.sandboxes.kill((await start()).sandboxId);
  assert.deepEqual(await readdir(f.serialDir), []);
  const lost = await start();
  f.host.vms.get(lost.incarnation)?.die('panic');
  await new Promise((resolve) => setImmediate(resolve));
  await f.sandboxes.routes.get(lost.sandboxId)?.gone;
  assert.deepEqual(await readdir(f.serialDir), [`${lost.incarnation}.log`]);
});

test('the newest twenty of those that are not in use are kept', async () => {
  await using f = await fixture();
  await mkdir(f.serialDir);
  for (let i = 10; i < 40; i++) {
    const path = join(f.serialDir, `vm${i}.log`);
    await writeFile(path, '');
    await utimes(path, i, i);
  }
  await new SerialLogs(f.serialDir).prune(new Set(['vm10', 'vm39']));
  const left = await readdir(f.serialDir);
  assert.equal(left.length, 22);
  assert.ok(left.includes('vm10.log') && left.includes('vm39.log') && left.includes('vm19.log'));
  assert.ok(!left.includes('vm18.log'));
});
