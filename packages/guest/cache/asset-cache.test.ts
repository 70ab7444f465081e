import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AssetCache, type Recipe } from './asset-cache.ts';
import { digestInputs } from './inputs.ts';

let dir: string;
let builds: number;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'guest-cache-'));
  builds = 0;
});
afterEach(() => rm(dir, { recursive: true, force: true }));

function recipe(inputs: string, build?: Recipe['build']): Recipe {
  return {
    kind: 'kernel',
    digest: digestInputs({ inputs }),
    files: { image: 0o644, program: 0o755 },
    async build(entry, scratch) {
      builds += 1;
      await build?.(entry, scratch);
      await writeFile(join(scratch, 'left behind'), '');
      await writeFile(join(entry, 'image'), `made of ${inputs}`);
      await writeFile(join(entry, 'program'), 'x');
    },
  };
}

const image = (entry: string) => readFile(join(entry, 'image'), 'utf8');

test('the same inputs are built once, other inputs again, and older entries stay', async () => {
  const first = await new AssetCache(dir).get(recipe('a'));
  assert.equal(await new AssetCache(dir).get(recipe('a')), first);
  assert.equal(builds, 1);
  const second = await new AssetCache(dir).get(recipe('b'));
  assert.equal(builds, 2);
  assert.deepEqual([await image(first), await image(second)], ['made of a', 'made of b']);
  assert.equal((await stat(join(first, 'program'))).mode & 0o777, 0o755);
  assert.deepEqual(
    (await readdir(dir)).filter((name) => name.startsWith('.')),
    [],
  );
});

test('an entry that is shortened, changed, incomplete or without its seals is built again', async () => {
  const cache = new AssetCache(dir);
  const damages: readonly ((entry: string) => Promise<void>)[] = [
    (entry) => truncate(join(entry, 'image'), 3),
    (entry) => writeFile(join(entry, 'image'), 'made of b'),
    (entry) => rm(join(entry, 'program')),
    (entry) => rm(join(entry, 'seals.json')),
    (entry) => writeFile(join(entry, 'seals.json'), '{"image":'),
    (entry) => writeFile(join(entry, 'seals.json'), 'null'),
  ];
  for (const damage of damages) {
    const entry = await cache.get(recipe('a'));
    await damage(entry);
    const before = builds;
    assert.equal(await cache.has(recipe('a')), false, damage.toString());
    assert.equal(await cache.get(recipe('a')), entry);
    assert.equal(builds, before + 1);
    assert.equal(await image(entry), 'made of a');
  }
});

test('an entry that was only copied or touched is still good', async () => {
  const entry = await new AssetCache(dir).get(recipe('a'));
  await utimes(join(entry, 'image'), new Date(), new Date());
  assert.equal(await new AssetCache(dir).has(recipe('a')), true);
});

test('two at once both get a whole entry', async () => {
  const slow = recipe('a', async () => sleep(30));
  const entries = await Promise.all([new AssetCache(dir).get(slow), new AssetCache(dir).get(slow)]);
  assert.equal(entries[0], entries[1]);
  assert.equal(builds, 2);
  assert.equal(await image(entries[0]), 'made of a');
  assert.deepEqual(await readdir(dir), [`kernel-${slow.digest}`]);
});

test('a build that fails leaves nothing and the next one succeeds', async () => {
  const cache = new AssetCache(dir);
  const failing = recipe('a', async (entry) => {
    await writeFile(join(entry, 'image'), 'half');
    throw new Error('no more');
  });
  await assert.rejects(cache.get(failing), /no more/);
  assert.deepEqual(await readdir(dir), []);
  assert.equal(await image(await cache.get(recipe('a'))), 'made of a');
});

test('what a process that is gone left half built is removed, what a running one builds is not', async () => {
  await mkdir(join(dir, '.tmp-999999999-1-abc/entry'), { recursive: true });
  await mkdir(join(dir, `.tmp-${process.pid}-1-abc`));
  let seen: string[] = [];
  const looking = recipe('a', async () => {
    seen = await readdir(dir);
    await new AssetCache(dir).get(recipe('b'));
    seen = [...seen, ...(await readdir(dir)).filter((name) => seen.includes(name))];
  });
  await new AssetCache(dir).get(looking);
  const own = seen.filter((name) => name.startsWith('.tmp-'));
  assert.equal(own.length, 2);
  assert.equal(own[0], own[1]);
  assert.deepEqual(
    (await readdir(dir)).filter((name) => name.startsWith('.')),
    [],
  );
});

test('the digest tells apart what only looks the same when written one after another', () => {
  assert.notEqual(digestInputs({ a: 'b', c: '' }), digestInputs({ a: '', c: 'b' }));
  assert.notEqual(digestInputs({ ab: 'c' }), digestInputs({ a: 'bc' }));
  assert.equal(digestInputs({ a: '1', b: '2' }), digestInputs({ b: Buffer.from('2'), a: '1' }));
});
