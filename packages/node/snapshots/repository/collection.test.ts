import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readMemoryOf } from './testing/flat-memory.ts';
import { type Change, HOST, Lab } from './testing/lab.ts';

const NOTHING = { memoryBases: () => [] };
const FIRST: Change[] = [{ page: 1, count: 3, value: 1 }];
const SECOND: Change[] = [{ page: 1100, count: 2, value: 2 }];

async function inventory(lab: Lab): Promise<Record<string, number>> {
  const names = ['by-id', 'drafts', 'transient', 'chunks', 'bases', 'memory'];
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, (await readdir(join(lab.root, name))).length] as const)),
  );
}
const EMPTY = { 'by-id': 0, drafts: 0, transient: 0, chunks: 0, bases: 0, memory: 0 };

test('what the last snapshot needed goes; what another one needs stays and starts', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const memoryBase = await lab.baseFileOf('template');
  await lab.snapshot('child', SECOND, { memoryBase });
  await lab.snapshot('grandchild', SECOND, { memoryBase, asNewBase: true });
  await lab.repository.remove('template');
  assert.deepEqual(await lab.repository.gc(NOTHING), { bases: 0, chunks: 0, files: 0, freedBytes: 0, blockedBy: [] });
  await lab.memoryOf('child');
  await lab.repository.remove('child');
  const second = await lab.repository.gc(NOTHING);
  assert.deepEqual([second.bases, second.files, second.chunks], [1, 1, 0]);
  await lab.memoryOf('grandchild');
  await lab.repository.remove('grandchild');
  await lab.repository.remove('grandchild');
  const third = await lab.repository.gc(NOTHING);
  assert.deepEqual([third.bases, third.files, third.chunks], [1, 1, 2]);
  assert.deepEqual(await inventory(lab), EMPTY);
});

test('the base of a VM that runs stays, and snapshots of that VM can be made, whatever was removed', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const memoryBase = await lab.baseFileOf('template');
  const roots = { memoryBases: () => [memoryBase, '/elsewhere/zero-512.mem'], dropUnusedFiles: true };
  await lab.repository.remove('template');
  const { ino } = await stat(memoryBase);
  await lab.repository.gc(roots);
  assert.equal((await stat(memoryBase)).ino, ino);
  await lab.snapshot('child', SECOND, { memoryBase });
  assert.deepEqual((await lab.repository.verify('child')).problems, []);
});

test('a draft keeps the base of its VM, also when that has ended meanwhile', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const memoryBase = await lab.baseFileOf('template');
  await using draft = await lab.repository.begin({ id: 'child', memoryBase, memoryMb: 10 });
  await lab.capture(draft, SECOND);
  await lab.repository.remove('template');
  await lab.repository.gc({ ...NOTHING, dropUnusedFiles: true });
  await draft.commit(lab.facts());
  assert.deepEqual((await lab.repository.verify('child')).problems, []);
});

test('a snapshot that is removed while it is open is gone for others, and starts for whoever has it open', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  await lab.snapshot('a', SECOND, { memoryBase: await lab.baseFileOf('template') });
  const wanted = await lab.memoryOf('a');
  const [one, two] = [await lab.repository.open('a', HOST), await lab.repository.open('a', HOST)];
  await lab.repository.remove('template');
  await lab.repository.remove('a');
  await assert.rejects(lab.repository.get('a'), { code: 'snapshot_not_found' });
  await assert.rejects(lab.repository.open('a', HOST), { code: 'snapshot_not_found' });
  await assert.rejects(lab.snapshot('a', SECOND), { code: 'snapshot_exists' });
  await lab.repository.gc({ ...NOTHING, dropUnusedFiles: true });
  await one.close();
  await one.close();
  assert.equal(await readFile(two.image.deviceState, 'utf8'), 'state of devices');
  assert.ok((await readMemoryOf(two.image)).equals(wanted));
  await two.close();
  assert.deepEqual(await readdir(join(lab.root, 'by-id')), []);
  await lab.repository.gc(NOTHING);
  assert.deepEqual(await inventory(lab), EMPTY);
  await lab.snapshot('a', SECOND);
});

test('while it is not known what a snapshot needs, nothing that it could need is removed', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  await lab.snapshot('other', SECOND, { asNewBase: true });
  await lab.repository.remove('other');
  const path = join(lab.root, 'by-id', 'template', 'manifest.json');
  const good = await readFile(path, 'utf8');
  await writeFile(path, good.slice(1));
  const before = await inventory(lab);
  assert.deepEqual((await lab.repository.gc(NOTHING)).blockedBy, ['template']);
  assert.deepEqual(await inventory(lab), before);
  await writeFile(path, good);
  assert.equal((await lab.repository.gc(NOTHING)).bases, 1);
  await lab.memoryOf('template');
});

test('a damaged base manifest keeps the chunks of all', async () => {
  await using lab = await Lab.open();
  const { memory } = await lab.snapshot('template', FIRST, { asNewBase: true });
  await writeFile(join(lab.root, 'bases', memory.base.slice(7)), '{}');
  assert.deepEqual((await lab.repository.gc(NOTHING)).blockedBy, ['template']);
  assert.equal((await inventory(lab)).chunks, 1);
});

test('snapshots are opened, made and removed while garbage is collected', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const collecting = (async () => {
    for (let i = 0; i < 8; i++) await lab.repository.gc({ ...NOTHING, dropUnusedFiles: true });
  })();
  const worker = async (name: string) => {
    for (let i = 0; i < 3; i++) {
      const id = `${name}-${i}`;
      const opened = await lab.repository.open('template', HOST);
      await lab.snapshot(id, [{ page: 5 + i, count: 1, value: 3 }], {
        memoryBase: opened.image.memoryBase,
        asNewBase: i % 2 === 0,
      });
      assert.deepEqual((await stat(opened.image.memoryBase)).size, 10 * 2 ** 20);
      await opened.close();
      await lab.memoryOf(id);
      await lab.repository.remove(id);
    }
  };
  await Promise.all([collecting, worker('a'), worker('b')]);
  await lab.repository.gc(NOTHING);
  assert.deepEqual((await lab.repository.verify('template')).problems, []);
  const { bases, chunks } = await inventory(lab);
  assert.deepEqual([bases, chunks], [1, 1]);
});

test('a delta that is merged gives the same memory; whoever had it open goes on, and captures are small again', async () => {
  await using lab = await Lab.open();
  const large: Change[] = [{ page: 700, count: 600, value: 3 }];
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const before = await lab.snapshot('a', large, {
    memoryBase: await lab.baseFileOf('template'),
    asNewBase: false,
  });
  assert.ok(before.memory.delta !== undefined);
  const wanted = await lab.memoryOf('a');
  const opened = await lab.repository.open('a', HOST);
  await Promise.all([lab.repository.mergeDelta('a'), lab.repository.mergeDelta('a')]);
  await lab.repository.mergeDelta('a');
  assert.ok((await readMemoryOf(opened.image)).equals(wanted));
  await opened.close();
  const after = await lab.repository.get('a');
  assert.deepEqual(after, { ...before, memory: { memoryMb: before.memory.memoryMb, base: after.memory.base } });
  assert.ok((await lab.memoryOf('a')).equals(wanted));
  assert.deepEqual((await readdir(join(lab.root, 'by-id', 'a'))).sort(), ['device.state', 'manifest.json']);
  const next = await lab.snapshot('b', SECOND, { memoryBase: await lab.baseFileOf('a') });
  assert.equal(next.memory.delta?.dataBytes, 2 * 4096);
  await assert.rejects(lab.repository.mergeDelta('none'), { code: 'snapshot_not_found' });
});

test('a snapshot that is removed while its delta is merged does not come back', async () => {
  let reached = () => {};
  const merging = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const { promise: removed, resolve: goOn } = Promise.withResolvers<void>();
  await using lab = await Lab.open({
    faults: {
      async hit(point) {
        if (point !== 'snapshot.merge.before_rename') return;
        reached();
        await removed;
      },
    },
  });
  await lab.snapshot('a', FIRST);
  const merge = lab.repository.mergeDelta('a');
  await merging;
  await lab.repository.remove('a');
  goOn();
  await merge;
  assert.deepEqual(await lab.repository.list(), []);
  await lab.repository.gc(NOTHING);
  assert.deepEqual(await inventory(lab), EMPTY);
});

test('a merge of which nobody needs the result ends early, and leaves nothing', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('a', FIRST);
  let parts = 0;
  await lab.repository.mergeDelta('a', async () => {
    if (parts++ === 0) await lab.repository.remove('a');
  });
  assert.equal(parts, 1);
  await lab.repository.gc(NOTHING);
  assert.deepEqual(await inventory(lab), EMPTY);
});

test('a snapshot is opened again and again while its delta is merged', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const memoryBase = await lab.baseFileOf('template');
  for (let round = 0; round < 2; round++) {
    const id = `a-${round}`;
    await lab.snapshot(id, SECOND, { memoryBase });
    const wanted = await lab.memoryOf(id);
    let merged = false;
    const merge = lab.repository.mergeDelta(id).then(() => {
      merged = true;
    });
    const opener = async () => {
      while (!merged) assert.ok((await lab.memoryOf(id)).equals(wanted));
    };
    await Promise.all([merge, opener(), opener()]);
    assert.ok((await lab.memoryOf(id)).equals(wanted));
  }
});
