import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { envelopeText } from './manifest/file.ts';
import { FlatMemory } from './testing/flat-memory.ts';
import { type Change, giveChanges, HOST, Lab, MEMORY_MB, MIB, PAGE } from './testing/lab.ts';

const FIRST: Change[] = [
  { page: 1, count: 3, value: 1 },
  { page: 1100, count: 2, value: 2 },
];
const SECOND: Change[] = [
  { page: 2, count: 1, value: 0 },
  { page: 600, count: 5, value: 3 },
  { page: 2559, count: 1, value: 4 },
];

async function flat(...rounds: readonly (readonly Change[])[]): Promise<Buffer> {
  const memory = new FlatMemory(Buffer.alloc(MEMORY_MB * MIB));
  for (const changes of rounds) await giveChanges(changes, memory);
  return memory.bytes;
}

test('a snapshot of a cold boot is a delta to zeros, and comes back as it was, also in another process', async () => {
  await using lab = await Lab.open();
  const made = await lab.snapshot('one', FIRST);
  assert.ok((await lab.memoryOf('one')).equals(await flat(FIRST)));
  assert.equal(made.memory.delta?.dataBytes, 5 * PAGE);
  const again = await Lab.reopen(lab.folder);
  assert.deepEqual(await again.repository.get('one'), made);
  assert.deepEqual(await again.repository.list(), [made]);
  assert.ok((await again.memoryOf('one')).equals(await flat(FIRST)));
  assert.deepEqual((await again.repository.verify('one')).problems, []);
});

test('the file that VMs map is for reading only, in folders that others may pass; everything else is closed', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  await lab.snapshot('one', SECOND, { memoryBase: await lab.baseFileOf('template') });
  const mode = async (...path: string[]) => ((await stat(join(lab.root, ...path))).mode & 0o777).toString(8);
  assert.deepEqual([await mode('.'), await mode('memory')], ['711', '711']);
  for (const name of await readdir(join(lab.root, 'memory'))) assert.equal(await mode('memory', name), '444');
  for (const name of ['by-id', 'chunks', 'bases', 'drafts']) assert.equal(await mode(name), '700');
  for (const name of ['manifest.json', 'device.state', 'memory.delta']) {
    assert.equal(await mode('by-id', 'one', name), '600');
  }
});

test('a chain of pause and resume is one base and one delta, however long it is', async () => {
  await using lab = await Lab.open();
  const template = await lab.snapshot('template', FIRST, { asNewBase: true });
  assert.equal(template.memory.delta, undefined);
  const memoryBase = await lab.baseFileOf('template');
  let changes: Change[] = [];
  for (let round = 0; round < 4; round++) {
    changes = [...changes, { page: 2000 + round, count: 1, value: 10 + round }];
    const { memory } = await lab.snapshot(`pause-${round}`, changes, { memoryBase });
    assert.equal(memory.base, template.memory.base);
    assert.ok((await lab.memoryOf(`pause-${round}`)).equals(await flat(FIRST, changes)));
  }
});

test('a delta of more than a quarter of the memory becomes a base; what it leaves alone is not kept again', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const memoryBase = await lab.baseFileOf('template');
  const chunks = async () => (await readdir(join(lab.root, 'chunks'))).length;
  assert.equal(await chunks(), 2);
  const large: Change[] = [{ page: 1024, count: 700, value: 5 }];
  const merged = await lab.snapshot('large', large, { memoryBase });
  assert.equal(merged.memory.delta, undefined);
  assert.equal(await chunks(), 3);
  assert.ok((await lab.memoryOf('large')).equals(await flat(FIRST, large)));
  const small = await lab.snapshot('small', large.slice(0, 0), { memoryBase: await lab.baseFileOf('large') });
  assert.deepEqual([small.memory.base, small.memory.delta], [merged.memory.base, undefined]);
  assert.equal(await chunks(), 3);
});

test('what several continue becomes a base when they would have more than half a memory of it twice', async () => {
  await using lab = await Lab.open();
  const changes: Change[] = [{ page: 1024, count: 400, value: 5 }];
  const few = await lab.snapshot('few', changes, { durable: false, continued: 4 });
  assert.equal(few.memory.delta?.dataBytes, 400 * PAGE);
  const many = await lab.snapshot('many', changes, { durable: false, continued: 5 });
  assert.equal(many.memory.delta, undefined);
  assert.ok((await lab.memoryOf('many')).equals(await lab.memoryOf('few')));
});

test('two machines with the same memory have one base', async () => {
  await using lab = await Lab.open();
  const [a, b] = await Promise.all(['a', 'b'].map((id) => lab.snapshot(id, FIRST, { asNewBase: true })));
  assert.equal(a?.memory.base, b?.memory.base);
  assert.equal((await readdir(join(lab.root, 'memory'))).length, 1);
});

test('memory that becomes zero again leaves no chunk', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('a', FIRST, { asNewBase: true });
  const zeroed: Change[] = FIRST.map(({ page, count }) => ({ page, count, value: 0 }));
  const b = await lab.snapshot('b', zeroed, { asNewBase: true, memoryBase: await lab.baseFileOf('a') });
  await lab.repository.remove('a');
  await lab.repository.gc({ memoryBases: () => [] });
  assert.deepEqual(await readdir(join(lab.root, 'chunks')), []);
  assert.ok((await lab.memoryOf(b.id)).equals(await flat()));
});

test('a base file that is missing is made again from the chunks', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('a', FIRST, { asNewBase: true });
  const path = await lab.baseFileOf('a');
  const report = await lab.repository.gc({ memoryBases: () => [], dropUnusedFiles: true });
  assert.deepEqual([report.files, report.bases, report.chunks], [1, 0, 0]);
  assert.ok(report.freedBytes > 0);
  await assert.rejects(stat(path), { code: 'ENOENT' });
  assert.ok((await lab.memoryOf('a')).equals(await flat(FIRST)));
  assert.equal(await lab.baseFileOf('a'), path);
});

test('a draft that is not committed leaves nothing, and its id is free again', async () => {
  await using lab = await Lab.open();
  {
    await using draft = await lab.repository.begin({ id: 'a', memoryBase: lab.zeros, memoryMb: MEMORY_MB });
    await lab.capture(draft, FIRST);
    await assert.rejects(lab.snapshot('a', []), { code: 'snapshot_exists' });
    assert.deepEqual(await lab.repository.list(), []);
  }
  for (const name of ['drafts', 'by-id', 'memory', 'chunks', 'bases']) {
    assert.deepEqual(await readdir(join(lab.root, name)), [], name);
  }
  await lab.snapshot('a', FIRST);
  await assert.rejects(lab.snapshot('a', FIRST), { code: 'snapshot_exists' });
});

test('a commit that fails leaves nothing that is seen', async () => {
  await using lab = await Lab.open();
  {
    await using draft = await lab.repository.begin({ id: 'a', memoryBase: lab.zeros, memoryMb: MEMORY_MB });
    // The VMM made no device state.
    await assert.rejects(draft.commit(lab.facts(), { asNewBase: true }), { code: 'io_failed' });
    await assert.rejects(draft.commit(lab.facts()), { code: 'internal' });
  }
  await assert.rejects(lab.repository.get('a'), { code: 'snapshot_not_found' });
  assert.deepEqual(await readdir(join(lab.root, 'drafts')), []);
});

test('many drafts at once, of one base and of none, all become what they are', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('template', FIRST, { asNewBase: true });
  const memoryBase = await lab.baseFileOf('template');
  const ids = Array.from({ length: 8 }, (_, i) => `s${i}`);
  const changesOf = (i: number): Change[] => [{ page: 100 * i, count: 40, value: i + 1 }];
  await Promise.all([
    ...ids.map((id, i) => lab.snapshot(id, changesOf(i), { memoryBase, asNewBase: i % 2 === 0 })),
    lab.repository.gc({ memoryBases: () => [] }),
    lab.repository.gc({ memoryBases: () => [memoryBase], dropUnusedFiles: true }),
  ]);
  for (const [i, id] of ids.entries()) {
    assert.ok((await lab.memoryOf(id)).equals(await flat(FIRST, changesOf(i))), id);
    assert.deepEqual((await lab.repository.verify(id)).problems, []);
  }
});

test('a memory base that is neither of the repository nor zeros is refused', async () => {
  await using lab = await Lab.open();
  const begin = (memoryBase: string, memoryMb = MEMORY_MB) => lab.repository.begin({ id: 'a', memoryBase, memoryMb });
  const other = join(lab.folder, 'other.mem');
  await writeFile(other, Buffer.alloc(MEMORY_MB * MIB, 1));
  for (const path of [other, join(lab.folder, 'missing'), lab.folder]) {
    await assert.rejects(begin(path), { code: 'capture_failed' });
  }
  await assert.rejects(begin(lab.zeros, MEMORY_MB + 1), { code: 'capture_failed' });
  await assert.rejects(begin(join(lab.root, 'memory', `${'0'.repeat(64)}.mem`)), { code: 'snapshot_corrupt' });
  await lab.snapshot('template', FIRST, { asNewBase: true });
  await assert.rejects(begin(await lab.baseFileOf('template'), 2 * MEMORY_MB), { code: 'capture_failed' });
  assert.deepEqual(await readdir(join(lab.root, 'drafts')), []);
});

test('names that are no ids reach no file', async () => {
  await using lab = await Lab.open();
  await mkdir(join(lab.folder, 'outside'));
  for (const id of ['', '.', '..', '../outside', 'a/b', 'A', 'x'.repeat(65), '-a', '\0']) {
    await assert.rejects(lab.repository.get(id), { code: 'snapshot_not_found' });
    await assert.rejects(lab.repository.open(id, HOST), { code: 'snapshot_not_found' });
    await assert.rejects(lab.repository.verify(id), { code: 'snapshot_not_found' });
    await lab.repository.remove(id);
    await assert.rejects(lab.repository.begin({ id, memoryBase: lab.zeros, memoryMb: 1 }), RangeError);
  }
  assert.ok((await stat(join(lab.folder, 'outside'))).isDirectory());
});

test('a manifest of a newer version is refused as such; one whose version is a changed byte is damaged', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('a', FIRST);
  const path = join(lab.root, 'by-id', 'a', 'manifest.json');
  const text = await readFile(path, 'utf8');
  const { snapshot } = JSON.parse(text) as { snapshot: object };
  await writeFile(path, envelopeText(2, { ...snapshot, more: true }));
  await assert.rejects(lab.repository.get('a'), { code: 'snapshot_unsupported' });
  await assert.rejects(lab.repository.open('a', HOST), { code: 'snapshot_unsupported' });
  await writeFile(path, text.replace('"version":1', '"version":2'));
  await assert.rejects(lab.repository.get('a'), { code: 'snapshot_corrupt' });
  assert.deepEqual(await lab.repository.list(), []);
  assert.deepEqual(
    (await lab.repository.damaged()).map(({ id }) => id),
    ['a'],
  );
});

test('a manifest is that of its own snapshot only', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('a', FIRST);
  await lab.snapshot('b', SECOND);
  const path = (id: string) => join(lab.root, 'by-id', id, 'manifest.json');
  await writeFile(path('a'), await readFile(path('b')));
  await assert.rejects(lab.repository.get('a'), { code: 'snapshot_corrupt', message: /it is that of snapshot b/ });
});

test('a host that cannot run a snapshot is told why', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('a', FIRST);
  const build = { ...HOST.build, version: '2' };
  await assert.rejects(lab.repository.open('a', { ...HOST, build }), {
    code: 'snapshot_incompatible',
    message: /the version of fake was 1, here it is 2/,
  });
});

test('a snapshot that goes with the process is there until then', async () => {
  await using lab = await Lab.open();
  await lab.snapshot('a', FIRST, { durable: false });
  await lab.snapshot('b', FIRST, { durable: false });
  assert.ok((await lab.memoryOf('a')).equals(await flat(FIRST)));
  await lab.repository.remove('b');
  assert.deepEqual(
    (await lab.repository.list()).map(({ id }) => id),
    ['a'],
  );
  await assert.rejects(lab.snapshot('a', FIRST), { code: 'snapshot_exists' });
  const again = await Lab.reopen(lab.folder);
  assert.deepEqual(await again.repository.list(), []);
  assert.deepEqual(await readdir(join(lab.root, 'transient')), []);
});
