import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { FAULT_POINTS } from './faults.ts';
import { FlatMemory } from './testing/flat-memory.ts';
import { BASE_CHANGES, type Change, DELTA_CHANGES, giveChanges, Lab, MIB } from './testing/lab.ts';

const SCENARIO = fileURLToPath(new URL('./testing/crash-scenario.ts', import.meta.url));
/** A whole chunk and a part of one. */
const MEMORY_MB = 5;
const OLD_CHANGES: Change[] = [{ page: 1200, count: 4, value: 6 }];
const CONTENT: Readonly<Record<string, readonly Change[]>> = {
  kept: OLD_CHANGES.slice(0, 0),
  old: OLD_CHANGES,
  delta: DELTA_CHANGES,
  base: BASE_CHANGES,
};

/** Runs the scenario on a folder. @returns the lines that it printed, and the signal that ended it */
async function scenario(lab: Lab, ...args: string[]): Promise<{ lines: string[]; signal: unknown }> {
  const child = spawn(process.execPath, [SCENARIO, lab.folder, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [, signal] = await once(child, 'close');
  return { lines: output.split('\n').filter((line) => line !== ''), signal };
}

/**
 * What a kill leaves is what the files are at that moment. So one process is enough to see what each point leaves, as
 * copies; that a process which is killed there leaves just that is seen at some points, in soak at all.
 */
const REALLY_KILLED = process.env.AENV_SOAK === '1' ? FAULT_POINTS : FAULT_POINTS.filter((_, at) => at % 12 === 2);
let origin: Lab;
let copies: string;
let copied: string[];
before(async () => {
  origin = await prepared();
  copies = await mkdtemp(join(tmpdir(), 'repository-copies-'));
  copied = (await scenario(origin, '--copies', copies)).lines;
});
after(async () => {
  await origin[Symbol.asyncDispose]();
  await rm(copies, { recursive: true });
});

async function prepared(): Promise<Lab> {
  const lab = await Lab.open({}, MEMORY_MB);
  await lab.snapshot('old', OLD_CHANGES, { asNewBase: true });
  await lab.snapshot('kept', []);
  return lab;
}

/** @returns the folder as a process leaves it that is killed at the point, and what that one had acknowledged */
async function crashAt(point: string, killed: Lab | undefined): Promise<{ folder: string; acknowledged: string[] }> {
  if (killed !== undefined) {
    const { lines, signal } = await scenario(killed, point);
    assert.equal(signal, 'SIGKILL', `${point} was not reached`);
    return { folder: killed.folder, acknowledged: lines };
  }
  const at = copied.indexOf(`reached ${point}`);
  assert.ok(at >= 0, `${point} was not reached: ${copied.join()}`);
  return { folder: join(copies, point), acknowledged: copied.slice(0, at) };
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
    await using lab = REALLY_KILLED.includes(point) ? await prepared() : undefined;
    const { folder, acknowledged } = await crashAt(point, lab);

    await using next = await Lab.reopen(folder);
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
