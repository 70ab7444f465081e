import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { hashFile } from './hash-file.ts';
import { readMemoryOf } from './testing/flat-memory.ts';
import { type Change, HOST, Lab } from './testing/lab.ts';

const BASE: Change[] = [
  { page: 1, count: 3, value: 1 },
  { page: 1100, count: 2, value: 2 },
];
const DELTA: Change[] = [{ page: 600, count: 5, value: 3 }];

/** A whole chunk and a part of one: each byte that is changed has all of it read twice. */
const MEMORY_MB = 5;

/** A template, and a snapshot `a` of a VM that was started from it. */
async function lab(): Promise<Lab> {
  const made = await Lab.open({}, MEMORY_MB);
  await made.snapshot('template', BASE, { asNewBase: true });
  await made.snapshot('a', DELTA, { memoryBase: await made.baseFileOf('template') });
  return made;
}

async function flip(path: string, at: number): Promise<void> {
  await using file = await open(path, 'r+');
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at);
  byte[0] = (byte[0] ?? 0) ^ 0x20;
  await file.write(byte, 0, 1, at);
}

/** Begin, middle, end, and some between. */
async function placesIn(path: string): Promise<number[]> {
  const { size } = await stat(path);
  const even = Array.from({ length: 5 }, (_, i) => Math.floor(((size - 1) * i) / 4));
  return [...new Set([...even, Math.min(8, size - 1), Math.min(300, size - 1)])];
}

/** What a start does, up to the first guest instruction. */
async function start(here: Lab): Promise<void> {
  const opened = await here.repository.open('a', HOST);
  try {
    await readMemoryOf(opened.image);
  } finally {
    await opened.close();
  }
}

/** Path of each kind of artefact that a start reads, by the name that errors give it. */
async function artefactsOf(here: Lab): Promise<[RegExp, string][]> {
  const { memory } = await here.repository.get('a');
  const own = join(here.root, 'by-id', 'a');
  return [
    [/manifest of snapshot a/, join(own, 'manifest.json')],
    [/device state/, join(own, 'device.state')],
    [/memory delta/, join(own, 'memory.delta')],
    [/manifest of memory base/, join(here.root, 'bases', memory.base.slice(7))],
    [/file of memory base/, await here.baseFileOf('a')],
  ];
}

test('a byte that is changed in any region of any artefact is found by its name, and nothing starts from it', async () => {
  await using here = await lab();
  await start(here);
  assert.deepEqual((await here.repository.verify('a')).problems, []);
  for (const [name, path] of await artefactsOf(here)) {
    for (const at of await placesIn(path)) {
      await flip(path, at);
      const { problems } = await here.repository.verify('a');
      assert.equal(problems.length, 1, `${path} at ${at}`);
      assert.equal(problems[0]?.path, path);
      assert.match(
        problems[0]?.message ?? '',
        name.source.includes('device') || name.source.includes('delta') ? /./ : name,
      );
      await assert.rejects(start(here), (error) => {
        assert.ok(error instanceof AenvError && error.code === 'snapshot_corrupt', `${path} at ${at}: ${error}`);
        assert.match(error.message, name);
        return true;
      });
      await flip(path, at);
    }
  }
  await start(here);
  assert.deepEqual((await here.repository.verify('a')).problems, []);
});

test('a byte that is changed in a chunk is found, and no base file is made of it', async () => {
  await using here = await lab();
  await here.repository.gc({ memoryBases: () => [], dropUnusedFiles: true });
  for (const name of await readdir(join(here.root, 'chunks'))) {
    const path = join(here.root, 'chunks', name);
    for (const at of await placesIn(path)) {
      await flip(path, at);
      const { problems } = await here.repository.verify('a');
      assert.deepEqual(
        problems.map((problem) => problem.path),
        [path],
      );
      await assert.rejects(start(here), { code: 'snapshot_corrupt', message: new RegExp(`memory chunk ${name}`) });
      await flip(path, at);
    }
  }
  assert.deepEqual(await readdir(join(here.root, 'memory')), []);
  await start(here);
});

test('another process does not trust a base file that it has not read', async () => {
  await using here = await lab();
  await flip(await here.baseFileOf('a'), 4.5 * 2 ** 20);
  const again = await Lab.reopen(here.folder);
  await assert.rejects(start(again), { code: 'snapshot_corrupt', message: /file of memory base .* at 4194304/ });
});

test('an artefact that is missing is named', async () => {
  await using here = await lab();
  const artefacts = (await artefactsOf(here)).slice(1, 4);
  const tools = join(here.folder, 'tools');
  for (const [name, path] of [...artefacts, [/tools drive/, tools] as const]) {
    await rename(path, `${path}-away`);
    await assert.rejects(start(here), { code: 'snapshot_corrupt', message: name });
    assert.deepEqual(
      (await here.repository.verify('a')).problems.map((problem) => problem.path),
      [path],
    );
    await rename(`${path}-away`, path);
  }
  await here.repository.gc({ memoryBases: () => [], dropUnusedFiles: true });
  const [chunk = ''] = await readdir(join(here.root, 'chunks'));
  await rm(join(here.root, 'chunks', chunk));
  await assert.rejects(start(here), { code: 'snapshot_corrupt', message: new RegExp(`${chunk} .*missing`) });
});

test('a damaged disk is told by whoever has the disks', async () => {
  const problem = { artefact: 'disk layer 1', path: '/layers/a', message: 'its digest does not hold' };
  await using here = await Lab.open({
    verifyDisk: async ({ paths }) => ({ checkedBytes: paths.length, problems: [problem] }),
  });
  await here.snapshot('a', DELTA);
  const { checkedBytes, problems } = await here.repository.verify('a');
  assert.deepEqual(problems, [problem]);
  assert.ok(checkedBytes > 1);
});

test('the sum of a file is that of all its bytes, however it is read; of one that cannot be read there is none', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sums-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'file');
  for (const size of [0, 1, 256 * 1024, 3 * 256 * 1024 + 5]) {
    const content = randomBytes(size);
    await writeFile(path, content);
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
    assert.deepEqual(await hashFile(path), { sizeBytes: size, digest });
  }
  for (const bad of [folder, join(folder, 'none')]) await assert.rejects(hashFile(bad), { code: 'io_failed' });
});
