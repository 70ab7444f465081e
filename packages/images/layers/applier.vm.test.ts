import assert from 'node:assert/strict';
import { lstat, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { TestRoot } from '../testing/apply.ts';
import type { TestMember } from '../testing/tar.ts';

const file = (name: string, data = name): TestMember => ({ name, data });
const text = (root: TestRoot, name: string) => readFile(root.path(name), 'utf8');

async function tree(root: TestRoot): Promise<string[]> {
  const entries = await readdir(root.root, { recursive: true });
  return entries.sort();
}

test('owners, modes, times and attributes are those of the entry', async () => {
  await using root = await TestRoot.make();
  const capability = Buffer.from('0100000200200000000000000000000000000000', 'hex');
  await root.apply([
    [
      { name: 'd/', mode: 0o3777, uid: 100_000, gid: 5, mtime: 1000 },
      {
        name: 'd/ping',
        data: 'x',
        mode: 0o6755,
        uid: 7,
        gid: 8,
        mtime: -86_400,
        pax: { 'SCHILY.xattr.security.capability': capability },
      },
      { name: 'd/l', flag: '2', linkName: '/nowhere', uid: 9, gid: 9, mtime: 2000 },
    ],
  ]);
  const [folder, ping, link] = await Promise.all(['d', 'd/ping', 'd/l'].map((name) => lstat(root.path(name))));
  assert.deepEqual([folder?.mode, folder?.uid, folder?.gid, folder?.mtimeMs], [0o043777, 100_000, 5, 1_000_000]);
  assert.deepEqual([ping?.mode, ping?.uid, ping?.gid, ping?.mtimeMs], [0o106755, 7, 8, -86_400_000]);
  assert.deepEqual([link?.uid, link?.mtimeMs, await readlink(root.path('d/l'))], [9, 2_000_000, '/nowhere']);
  const shown = await run([
    'getfattr',
    '--absolute-names',
    '-n',
    'security.capability',
    '-e',
    'hex',
    root.path('d/ping'),
  ]);
  assert.match(shown.stdout, /0x0100000200200000000000000000000000000000/);
});

test('names are bytes: blanks, newlines, quotes and what is no UTF-8', async () => {
  await using root = await TestRoot.make();
  const names = ['a b', 'new\nline', 'it\'s "x"', '-rf', '\xff\xfe'];
  await root.apply([
    names.map((name) => ({ name, data: 'x', pax: { 'SCHILY.xattr.user.note': Buffer.from(name, 'latin1') } })),
  ]);
  const found = await readdir(root.root, { encoding: 'latin1' });
  assert.deepEqual(found.sort(), [...names].sort());
  const { stdout } = await run(['getfattr', '-R', '-n', 'user.note', '-e', 'hex', '.'], {
    cwd: root.root,
    okCodes: [0, 1],
  });
  assert.equal(stdout.match(/user\.note=/g)?.length, names.length);
});

test('device nodes and fifos are made', async () => {
  await using root = await TestRoot.make();
  await root.apply([
    [
      { name: 'dev/null', flag: '3', dev: [1, 3], mode: 0o666 },
      { name: 'dev/sda', flag: '4', dev: [8, 0], mode: 0o660, gid: 6 },
      { name: 'pipe\xff', flag: '6', mode: 0o622 },
    ],
  ]);
  const [zero, disk] = [await lstat(root.path('dev/null')), await lstat(root.path('dev/sda'))];
  assert.deepEqual([zero.isCharacterDevice(), zero.rdev, zero.mode & 0o777], [true, (1 << 8) | 3, 0o666]);
  assert.deepEqual([disk.isBlockDevice(), disk.rdev, disk.gid], [true, 8 << 8, 6]);
  assert.ok((await lstat(Buffer.from(`${root.root}/pipe\xff`, 'latin1'))).isFIFO());
});

test('a whiteout hides what lower layers have, and leaves no trace', async () => {
  await using root = await TestRoot.make();
  await root.apply([
    [file('a'), file('d/x'), file('d/deep/y'), file('kept')],
    [file('.wh.a', ''), file('.wh.d', ''), file('.wh.never-there', ''), file('no/such/.wh.folder', '')],
  ]);
  assert.deepEqual(await tree(root), ['kept']);
});

test('a whiteout that is a hard link to another one is a whiteout', async () => {
  await using root = await TestRoot.make();
  await root.apply([
    [file('a'), file('b')],
    [file('.wh.a', ''), { name: '.wh.b', flag: '1', linkName: '.wh.a' }],
  ]);
  assert.deepEqual(await tree(root), []);
});

test('a whiteout spares what its own layer has put there, before it or after it', async () => {
  await using root = await TestRoot.make();
  await root.apply([
    [file('before', 'old'), file('after', 'old'), file('d/old')],
    [
      file('before', 'new'),
      file('.wh.before', ''),
      file('.wh.after', ''),
      file('after', 'new'),
      file('d/new'),
      file('.wh.d', ''),
    ],
  ]);
  assert.deepEqual(await tree(root), ['after', 'before', 'd', 'd/new']);
  assert.deepEqual([await text(root, 'before'), await text(root, 'after')], ['new', 'new']);
});

test('an opaque folder hides its lower content, wherever its marker stands in the archive', async () => {
  for (const layer of [
    [file('d/.wh..wh..opq', ''), file('d/y')],
    [file('d/y'), file('d/.wh..wh..opq', '')],
  ]) {
    await using root = await TestRoot.make();
    await root.apply([[file('d/x'), file('d/sub/z'), file('other')], layer]);
    assert.deepEqual(await tree(root), ['d', 'd/y', 'other']);
  }
});

test('bookkeeping of AUFS is no part of the file system', async () => {
  await using root = await TestRoot.make();
  await root.apply([[file('.wh..wh.aufs', ''), file('.wh..wh.plnk/1.2', ''), { name: '.wh..wh.orph/' }, file('a')]]);
  assert.deepEqual(await tree(root), ['a']);
});

test('hard links join files across layers and replace what has their name', async () => {
  await using root = await TestRoot.make();
  await root.apply([
    [file('f', 'data'), file('other'), file('dir/x'), file('same')],
    [
      { name: 'other', flag: '1', linkName: 'f' },
      { name: 'dir', flag: '1', linkName: '/f' },
      { name: 'same', flag: '1', linkName: './same' },
    ],
  ]);
  const inodes = await Promise.all(['f', 'other', 'dir'].map(async (name) => (await stat(root.path(name))).ino));
  assert.equal(new Set(inodes).size, 1);
  assert.equal(await text(root, 'same'), 'same');
});

test('replacing one name of a hard link leaves the other one alone', async () => {
  await using root = await TestRoot.make();
  await root.apply([[file('a', 'old'), { name: 'b', flag: '1', linkName: 'a' }], [file('a', 'new')]]);
  assert.deepEqual([await text(root, 'a'), await text(root, 'b')], ['new', 'old']);
});

test('folder, link and file replace one another across layers; the last one wins', async () => {
  await using root = await TestRoot.make();
  const link: TestMember = { name: 'd', flag: '2', linkName: 'target' };
  await root.apply([[file('target/t'), file('d/x')], [link], [{ name: 'd/', mode: 0o700 }, file('d/y')]]);
  assert.deepEqual(await tree(root), ['d', 'd/y', 'target', 'target/t']);
  assert.equal((await lstat(root.path('d'))).mode & 0o777, 0o700);
  await root.apply([[file('d', 'now a file')]]);
  assert.equal(await text(root, 'd'), 'now a file');
});

test('an empty layer, a layer with only a mode, and an entry given twice are legal', async () => {
  await using root = await TestRoot.make();
  await root.apply([
    [{ name: 'd/', mode: 0o755 }, file('d/f', 'one'), file('d/f', 'two')],
    [],
    [{ name: 'd/', mode: 0o1777, mtime: 4000 }],
    [{ name: './', mode: 0o711 }],
  ]);
  const folder = await stat(root.path('d'));
  assert.deepEqual([folder.mode & 0o7777, folder.mtimeMs], [0o1777, 4_000_000]);
  assert.equal(await text(root, 'd/f'), 'two');
  assert.equal((await stat(root.root)).mode & 0o777, 0o711);
});

test('folders without an entry of their own are made the same every time', async () => {
  await using root = await TestRoot.make();
  await root.apply([[file('usr/lib/x')]]);
  const folder = await stat(root.path('usr/lib'));
  assert.deepEqual([folder.mode & 0o7777, folder.uid, folder.mtimeMs], [0o755, 0, 0]);
});

test('zeros become holes, and the size stays right', async () => {
  await using root = await TestRoot.make();
  const size = 8 * 2 ** 20;
  await root.apply([
    [{ name: 'sparse', data: Buffer.concat([Buffer.alloc(size), Buffer.from('end'), Buffer.alloc(size)]) }],
  ]);
  const found = await stat(root.path('sparse'));
  assert.equal(found.size, 2 * size + 3);
  assert.ok(found.blocks * 512 < 1 << 20, `${found.blocks * 512} bytes on disk`);
  const bytes = await readFile(root.path('sparse'));
  assert.equal(bytes.indexOf('end'), size);
});

test('nothing is ever written through a link that leads out', async () => {
  await using root = await TestRoot.make();
  const victim = join(root.top, 'victim');
  await writeFile(victim, 'untouched');
  const up = '../'.repeat(20);
  await root.apply([
    [
      { name: 'abs', flag: '2', linkName: root.top },
      { name: 'rel', flag: '2', linkName: `${up}${root.top}` },
      { name: 'last', flag: '2', linkName: victim },
      { name: 'loop/self', flag: '2', linkName: '../..' },
    ],
    [file('abs/victim', 'evil'), file('rel/victim', 'evil'), file('last', 'evil'), file('loop/self/top', 'evil')],
    [{ name: 'abs/new/', mode: 0o700 }, { name: 'abs/.wh.victim' }, { name: 'abs/.wh..wh..opq' }],
  ]);
  assert.equal(await readFile(victim, 'utf8'), 'untouched');
  assert.deepEqual((await readdir(root.top)).sort(), ['root', 'scratch', 'victim']);
  assert.equal(await text(root, 'last'), 'evil');
  assert.equal(await text(root, 'top'), 'evil');
});

test('a link on the way is followed inside the root, as the guest would', async () => {
  await using root = await TestRoot.make();
  await root.apply([
    [file('usr/lib/a'), { name: 'lib', flag: '2', linkName: 'usr/lib' }, { name: 'abs', flag: '2', linkName: '/usr' }],
    [file('lib/b'), file('abs/lib/c'), file('lib/.wh.a', '')],
  ]);
  assert.deepEqual(await readdir(root.path('usr/lib')), ['b', 'c']);
  assert.ok((await lstat(root.path('lib'))).isSymbolicLink());
});

for (const [what, members] of Object.entries({
  'a name with ..': [file('../escape')],
  'a hidden ..': [file('a/../../escape')],
  'a hard link to ..': [{ name: 'x', flag: '1', linkName: '../victim' }],
  'a hard link out through a link': [
    { name: 's', flag: '2', linkName: '/etc' },
    { name: 'x', flag: '1', linkName: 's/passwd' },
  ],
  'a hard link to a folder': [{ name: 'd/' }, { name: 'x', flag: '1', linkName: 'd' }],
  'a hard link to nothing': [{ name: 'x', flag: '1', linkName: 'nothing' }],
  'a chain of links without end': [
    { name: 'a', flag: '2', linkName: 'b' },
    { name: 'b', flag: '2', linkName: 'a' },
    file('a/x'),
  ],
  'a component of 300 bytes': [{ name: 'x', pax: { path: 'n'.repeat(300) }, data: '' }],
  'a device number out of range': [{ name: 'x', flag: '3', dev: [5000, 0] }],
  'an owner out of range': [{ name: 'x', data: '', pax: { uid: '4294967295' } }],
  'a root that is a file': [{ name: '/', flag: '0', data: 'x', pax: { path: '.' } }],
} satisfies Record<string, TestMember[]>)) {
  test(`refused: ${what}`, async () => {
    await using root = await TestRoot.make();
    await writeFile(join(root.top, 'victim'), 'untouched');
    await assert.rejects(root.apply([members]), { code: 'image_invalid' });
    assert.deepEqual((await readdir(root.top)).sort(), ['root', 'scratch', 'victim']);
  });
}

test('the totals of an image are bounded', async () => {
  const limits = { entries: 3, devices: 1, bytes: 100 };
  const over = async (members: TestMember[], message: RegExp) => {
    await using root = await TestRoot.make();
    await assert.rejects(root.apply([members], limits), { code: 'image_invalid', message });
  };
  await over(
    ['a', 'b', 'c', 'd'].map((name) => file(name)),
    /more than 3 entries/,
  );
  await over(
    ['a', 'b'].map((name) => ({ name, flag: '6' })),
    /more than 1 device/,
  );
  await over([file('a', 'x'.repeat(60)), file('b', 'x'.repeat(60))], /more than 100 bytes/);
});
