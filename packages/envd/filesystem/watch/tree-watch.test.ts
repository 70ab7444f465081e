import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { EventType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import fc from 'fast-check';
import { nativeForTests } from '../../testing/native.ts';
import { TreeWatch } from './tree-watch.ts';

const NAMES = new Map<number, string>(Object.entries(EventType).map(([name, value]) => [Number(value), name]));

let native: string;
let root: string;
let dir: string;
before(() => {
  native = nativeForTests();
  root = mkdtempSync(join(tmpdir(), 'aenv-watch-test-'));
});
after(() => rmSync(root, { recursive: true, force: true }));
test.beforeEach(() => {
  dir = mkdtempSync(join(root, 'd-'));
});

/** A watch whose changes are gathered; `seen` gives those of all that has happened until now, as `TYPE name`. */
class Observed implements Disposable {
  readonly watch: TreeWatch;
  readonly changes: string[] = [];
  readonly ended: Promise<unknown>;

  static async open(path = dir, recursive = true): Promise<Observed> {
    return new Observed(await TreeWatch.open({ native, path, recursive }));
  }

  private constructor(watch: TreeWatch) {
    this.watch = watch;
    this.ended = this.#gather().catch((error: unknown) => error);
  }

  async #gather(): Promise<void> {
    for await (const changes of this.watch.changes()) {
      for (const { name, type } of changes) this.changes.push(`${NAMES.get(type)} ${Buffer.from(name, 'latin1')}`);
    }
  }

  async seen(): Promise<string[]> {
    await Promise.race([new Promise<void>((resolve) => this.watch.mark(resolve)), this.ended]);
    return this.changes.splice(0);
  }

  [Symbol.dispose](): void {
    this.watch.close();
  }
}

test('each operation on a file is one change', async () => {
  using observed = await Observed.open(dir, false);
  const file = join(dir, 'é 🦀\n');
  writeFileSync(file, 'x');
  assert.deepEqual(await observed.seen(), ['CREATE é 🦀\n', 'WRITE é 🦀\n']);
  writeFileSync(file, '', { flag: 'a' });
  assert.deepEqual(await observed.seen(), [], 'nothing was written');
  writeFileSync(file, 'y', { flag: 'a' });
  assert.deepEqual(await observed.seen(), ['WRITE é 🦀\n']);
  execFileSync('chmod', ['600', file]);
  assert.deepEqual(await observed.seen(), ['CHMOD é 🦀\n']);
  renameSync(file, join(dir, 'b'));
  assert.deepEqual(await observed.seen(), ['RENAME é 🦀\n', 'CREATE b']);
  rmSync(join(dir, 'b'));
  assert.deepEqual(await observed.seen(), ['REMOVE b']);
  mkdirSync(join(dir, 'sub'));
  writeFileSync(join(dir, 'sub/f'), 'x');
  assert.deepEqual(await observed.seen(), ['CREATE sub'], 'what is below is not watched');
});

test('nothing of new folders is lost, however fast they are filled, and nothing is told twice', async () => {
  using observed = await Observed.open();
  for (let round = 0; round < 12; round++) {
    const top = join(dir, `r${round}`);
    mkdirSync(join(top, 'a/b/c'), { recursive: true });
    writeFileSync(join(top, 'a/b/c/file'), 'x');
    writeFileSync(join(top, 'a/empty'), '');
    // Sometimes all of it is there before the first event is looked at, sometimes not.
    if (round % 3 === 0) await new Promise(setImmediate);
    mkdirSync(join(top, 'a/late'));
    const seen = await observed.seen();
    const created = ['', '/a', '/a/b', '/a/b/c', '/a/b/c/file', '/a/empty', '/a/late'];
    assert.deepEqual(
      seen.filter((change) => change.startsWith('CREATE')).sort(),
      created.map((path) => `CREATE r${round}${path}`).sort(),
      `round ${round}`,
    );
    assert.ok(seen.includes(`WRITE r${round}/a/b/c/file`));
    assert.ok(seen.indexOf(`CREATE r${round}/a`) < seen.indexOf(`CREATE r${round}/a/late`));
    writeFileSync(join(top, 'a/late/after'), 'x');
    assert.deepEqual(await observed.seen(), [`CREATE r${round}/a/late/after`, `WRITE r${round}/a/late/after`]);
  }
});

test('what is there before is not told, and is watched', async () => {
  mkdirSync(join(dir, 'x/y/z'), { recursive: true });
  for (let i = 0; i < 600; i++) mkdirSync(join(dir, `many/${i}`), { recursive: true });
  symlinkSync(root, join(dir, 'link'));
  using observed = await Observed.open();
  assert.deepEqual(await observed.seen(), []);
  writeFileSync(join(dir, 'x/y/z/f'), '');
  writeFileSync(join(dir, 'many/599/f'), '');
  writeFileSync(join(root, 'outside'), '');
  assert.deepEqual(await observed.seen(), ['CREATE x/y/z/f', 'CREATE many/599/f']);
});

test('a folder that is renamed keeps its watch under the new name, with all that is below', async () => {
  mkdirSync(join(dir, 'a/b/c'), { recursive: true });
  mkdirSync(join(dir, 'other'));
  using observed = await Observed.open();
  renameSync(join(dir, 'a'), join(dir, 'other/A'));
  assert.deepEqual(await observed.seen(), ['RENAME a', 'CREATE other/A']);
  writeFileSync(join(dir, 'other/A/b/c/f'), '');
  assert.deepEqual(await observed.seen(), ['CREATE other/A/b/c/f']);
  mkdirSync(join(dir, 'a'));
  writeFileSync(join(dir, 'a/f'), '');
  assert.deepEqual(await observed.seen(), ['CREATE a', 'CREATE a/f']);
});

test('a folder that leaves is no longer watched, one that comes from elsewhere is read', async () => {
  const elsewhere = mkdtempSync(join(root, 'elsewhere-'));
  mkdirSync(join(dir, 'a/b'), { recursive: true });
  using observed = await Observed.open();
  renameSync(join(dir, 'a'), join(elsewhere, 'a'));
  assert.deepEqual(await observed.seen(), ['RENAME a']);
  writeFileSync(join(elsewhere, 'a/b/f'), 'x');
  assert.deepEqual(await observed.seen(), []);
  renameSync(join(elsewhere, 'a'), join(dir, 'back'));
  assert.deepEqual(await observed.seen(), ['CREATE back', 'CREATE back/b', 'CREATE back/b/f', 'WRITE back/b/f']);
  writeFileSync(join(dir, 'back/b/g'), '');
  assert.deepEqual(await observed.seen(), ['CREATE back/b/g']);
});

test('names that swap in the middle of it are not mixed up', async () => {
  using observed = await Observed.open();
  for (let round = 0; round < 8; round++) {
    // All of it happens before the first event is looked at.
    mkdirSync(join(dir, 'p/q'), { recursive: true });
    renameSync(join(dir, 'p'), join(dir, 'tmp'));
    mkdirSync(join(dir, 'p/q'), { recursive: true });
    renameSync(join(dir, 'tmp'), join(dir, 'p/q/new'));
    await observed.seen();
    writeFileSync(join(dir, 'p/q/new/q/deep'), '');
    writeFileSync(join(dir, 'p/q/near'), '');
    assert.deepEqual(await observed.seen(), ['CREATE p/q/new/q/deep', 'CREATE p/q/near'], `round ${round}`);
    rmSync(join(dir, 'p'), { recursive: true });
    await observed.seen();
  }
});

test('the end of the watched folder is told, and ends it', async () => {
  for (const [end, change] of [
    [() => rmSync(dir, { recursive: true }), 'REMOVE '],
    [() => renameSync(dir, `${dir}-moved`), 'RENAME '],
  ] as const) {
    mkdirSync(dir, { recursive: true });
    using observed = await Observed.open();
    end();
    const error = await observed.ended;
    assert.equal((error as { code: string }).code, 'path_not_found');
    assert.ok(observed.changes.includes(change), observed.changes.join());
  }
});

test('a folder that was moved together with its parent is noticed when the next folder appears', async () => {
  const inner = join(dir, 'parent/inner');
  mkdirSync(inner, { recursive: true });
  using observed = await Observed.open(inner);
  renameSync(join(dir, 'parent'), join(dir, 'moved'));
  mkdirSync(join(dir, 'moved/inner/new'));
  assert.equal(((await observed.ended) as { code: string }).code, 'path_not_found');
});

test('who does not read is told that changes were lost, and memory does not grow', async () => {
  const watch = await TreeWatch.open({ native, path: dir, recursive: false });
  try {
    const limit = Number(execFileSync('cat', ['/proc/sys/fs/inotify/max_queued_events'], { encoding: 'utf8' }));
    const [a, b] = [join(dir, 'a'), join(dir, 'b')];
    writeFileSync(a, '');
    // What is in pipes and buffers comes on top of the kernel's queue.
    for (let i = 0; i < limit * 2; i++) renameSync(i % 2 === 0 ? a : b, i % 2 === 0 ? b : a);
    let count = 0;
    await assert.rejects(
      async () => {
        for await (const changes of watch.changes()) count += changes.length;
      },
      { code: 'watch_overflow' },
    );
    assert.ok(count >= limit / 2 && count < limit * 4, `${count} of ${limit}`);
  } finally {
    watch.close();
  }
});

test('closing ends it without an error, also while nothing happens', async () => {
  const observed = await Observed.open();
  setTimeout(() => observed.watch.close(), 20);
  assert.equal(await observed.ended, undefined);
});

test('what cannot be watched is told', async () => {
  await assert.rejects(TreeWatch.open({ native, path: join(dir, 'no'), recursive: true }), { code: 'ENOENT' });
  writeFileSync(join(dir, 'file'), '');
  await assert.rejects(TreeWatch.open({ native, path: join(dir, 'file'), recursive: true }), { code: 'path_invalid' });
  await assert.rejects(TreeWatch.open({ native: '/no/such', path: dir, recursive: true }), { code: 'internal' });
  mkdirSync(join(dir, 'real'));
  symlinkSync('real', join(dir, 'link'));
  using observed = await Observed.open(join(dir, 'link'));
  writeFileSync(join(dir, 'real/f'), '');
  assert.deepEqual(await observed.seen(), ['CREATE f'], 'a link to a folder is as good');
});

// Operations of a model: a few names on three levels, so that they meet each other often.
const path = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));
const operation = fc.oneof(
  fc.record({ kind: fc.constant('mkdir' as const), path }),
  fc.record({ kind: fc.constant('write' as const), path }),
  fc.record({ kind: fc.constant('remove' as const), path }),
  fc.record({ kind: fc.constant('rename' as const), path, to: path }),
  fc.record({ kind: fc.constant('pause' as const), ms: fc.nat(4) }),
);

/** All paths below a folder; none, when it is no folder. */
function below(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch {
    return [];
  }
}

test('a client that follows the changes knows the tree, whatever happens in it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), async (operations) => {
      const tree = mkdtempSync(join(root, 'model-'));
      using observed = await Observed.open(tree);
      const known = new Set<string>();
      const follow = async () => {
        for (const change of await observed.seen()) {
          const [type, name = ''] = change.split(' ');
          if (type === 'WRITE') continue;
          for (const each of known) if (each === name || each.startsWith(`${name}/`)) known.delete(each);
          if (type !== 'CREATE') continue;
          known.add(name);
          // A folder may have come by a rename, with all that is in it, and in place of another one.
          for (const inner of below(join(tree, name))) known.add(`${name}/${inner}`);
        }
      };
      for (const step of operations) {
        try {
          if (step.kind === 'mkdir') mkdirSync(join(tree, step.path));
          else if (step.kind === 'write') writeFileSync(join(tree, step.path), 'x');
          else if (step.kind === 'remove') rmSync(join(tree, step.path), { recursive: true });
          else if (step.kind === 'rename') renameSync(join(tree, step.path), join(tree, step.to));
          else await delay(step.ms);
        } catch {
          // Many of them are not possible where they come.
        }
      }
      await follow();
      const real = below(tree);
      assert.deepEqual([...known].sort(), real.sort());
      // And it is all watched.
      for (const each of real.filter((name) => statSync(join(tree, name)).isDirectory())) {
        writeFileSync(join(tree, each, 'probe'), '');
      }
      await follow();
      assert.deepEqual([...known].sort(), below(tree).sort());
      rmSync(tree, { recursive: true });
    }),
    { numRuns: process.env.AENV_SOAK === '1' ? 600 : 25 },
  );
});
