import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { FAULT_POINTS } from './faults.ts';
import { FlatMemory } from './testing/flat-memory.ts';
import { BASE_CHANGES, type Change, DELTA_CHANGES, giveChanges, Lab, MEMORY_MB, MIB } from './testing/lab.ts';

const SCENARIO = fileURLToPath(new URL('./testing/crash-scenario.ts', import.meta.url));
const OLD_CHANGES: Change[] = [{ page: 2300, count: 4, value: 6 }];
const CONTENT: Readonly<Record<string, readonly Change[]>> = {
  kept: OLD_CHANGES.slice(0, 0),
  old: OLD_CHANGES,
  delta: DELTA_CHANGES,
  base: BASE_CHANGES,
};

/** Runs the scenario until it ends itself. @returns what it had acknowledged */
async function crashAt(lab: Lab, point: string): Promise<string[]> {
  const child = spawn(process.execPath, [SCENARIO, lab.folder, point], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [, signal] = await once(child, 'close');
  assert.equal(signal, 'SIGKILL', `${point} was not reached`);
  return output.split('\n').filter((line) => line !== '');
}

async function assertWhole(lab: Lab, id: string): Promise<void> {
  assert.deepEqual((await lab.repository.verify(id)).problems, [], id);
  const wanted = new FlatMemory(Buffer.alloc(MEMORY_MB * MIB));
  await giveChanges(CONTENT[id] ?? [], wanted);
  assert.ok((await lab.memoryOf(id)).equals(wanted.bytes), id);
}

/** Names of all files, those of the repository's folders excluded. */
async function leftIn(lab: Lab): Promise<string[]> {
  const entries = await readdir(lab.root, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
}

for (const point of FAULT_POINTS) {
  test(`killed at ${point}: what was acknowledged is there, the rest is whole or not there, nothing leaks`, async () => {
    await using lab = await Lab.open();
    await lab.snapshot('old', OLD_CHANGES, { asNewBase: true });
    await lab.snapshot('kept', []);
    const acknowledged = await crashAt(lab, point);

    const next = await Lab.reopen(lab.folder);
    const ids = (await next.repository.list()).map(({ id }) => id);
    assert.deepEqual(await next.repository.damaged(), []);
    for (const id of ids) await assertWhole(next, id);
    assert.ok(ids.includes('kept'));
    for (const id of ['delta', 'base', 'old']) {
      if (acknowledged.includes(`removed ${id}`)) assert.ok(!ids.includes(id), `${id} was removed`);
      // The scenario was in the middle of removing one when it was killed there.
      else if (acknowledged.includes(`made ${id}`) && !point.startsWith('snapshot.remove.')) {
        assert.ok(ids.includes(id), `${id} was made`);
      }
    }
    for (const name of ['drafts', 'transient']) assert.deepEqual(await readdir(join(next.root, name)), []);

    for (const id of ['delta', 'base', 'old']) await next.repository.remove(id);
    await next.snapshot('delta', DELTA_CHANGES);
    await assertWhole(next, 'delta');
    for (const id of ['delta', 'kept']) await next.repository.remove(id);
    await next.repository.gc({ memoryBases: () => [] });
    assert.deepEqual(await leftIn(next), []);
  });
}

test('a step of a commit that fails leaves nothing that is seen, and nothing at all after the next collection', async () => {
  const points = FAULT_POINTS.filter((point) => /\.(begin|capture|commit)\./.test(point));
  let failing: string | undefined;
  await using lab = await Lab.open({
    faults: {
      hit(point) {
        if (point === failing) throw new AenvError('no_space', `planned at ${point}`);
      },
    },
  });
  for (failing of points) {
    const attempt = lab.snapshot('a', BASE_CHANGES, { asNewBase: true });
    await assert.rejects(attempt, { code: 'no_space', message: new RegExp(`planned at ${failing}`) });
    assert.deepEqual(await lab.repository.list(), []);
    await lab.repository.gc({ memoryBases: () => [] });
    assert.deepEqual(await leftIn(lab), [], failing);
  }
  failing = undefined;
  await lab.snapshot('a', BASE_CHANGES, { asNewBase: true });
  assert.deepEqual((await lab.repository.verify('a')).problems, []);
});
