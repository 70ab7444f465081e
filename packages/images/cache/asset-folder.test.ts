import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { identify } from '@aenv/platform/process/identity.ts';
import { assetFolder } from './asset-folder.ts';

let parent = '';

beforeEach(async () => {
  parent = join(await mkdtemp(join(tmpdir(), 'images-cache-')), 'assets');
});

afterEach(async () => {
  await rm(join(parent, '..'), { recursive: true, force: true });
});

const write = (text: string) => (folder: string) => writeFile(join(folder, 'file'), text);
const content = async (folder: string) => readFile(join(folder, 'file'), 'utf8');

test('a folder is made once and then only looked at', async () => {
  const first = await assetFolder(parent, 'key', write('one'));
  const second = await assetFolder(parent, 'key', () => assert.fail('built again'));
  assert.equal(first, second);
  assert.equal(await content(second), 'one');
  assert.deepEqual(await readdir(parent), ['key']);
});

test('a failed build leaves nothing, and the next one succeeds', async () => {
  const failing = assetFolder(parent, 'key', async (folder, scratch) => {
    await writeFile(join(folder, 'file'), 'half');
    await mkdir(join(scratch, 'deep/er'), { recursive: true });
    throw new Error('no luck');
  });
  await assert.rejects(failing, /no luck/);
  assert.deepEqual(await readdir(parent), []);
  assert.equal(await content(await assetFolder(parent, 'key', write('whole'))), 'whole');
});

test('two builders at once agree on one result', async () => {
  const bothBegun = Promise.withResolvers<void>();
  let begun = 0;
  const build = (text: string) => async (folder: string) => {
    if (++begun === 2) bothBegun.resolve();
    await bothBegun.promise;
    await write(text)(folder);
  };
  const [first, second] = await Promise.all([
    assetFolder(parent, 'key', build('one')),
    assetFolder(parent, 'key', build('two')),
  ]);
  assert.equal(first, second);
  assert.match(await content(first), /^(one|two)$/);
  assert.deepEqual(await readdir(parent), ['key']);
});

test('what a killed builder left is removed, what a running one has is not', async () => {
  const self = await identify(process.pid);
  const dead = `.work-${process.pid}-${(self?.startTime ?? 0) - 1}-0123456789ab`;
  const alive = `.work-${process.pid}-${self?.startTime}-0123456789ab`;
  for (const name of [dead, alive]) await mkdir(join(parent, name, 'scratch'), { recursive: true });
  await assetFolder(parent, 'key', write('x'));
  assert.deepEqual((await readdir(parent)).sort(), [alive, 'key']);
});
