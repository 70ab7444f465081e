import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestImage } from '../../testing/ext4.ts';
import type { TestMember } from '../../testing/tar.ts';
import type { Node } from '../model/node.ts';

const file = (name: string, data = name): TestMember => ({ name, data });
const symlink = (name: string, linkName: string): TestMember => ({ name, flag: '2', linkName });
const link = (name: string, linkName: string): TestMember => ({ name, flag: '1', linkName });

async function imageOf(...layers: readonly (readonly TestMember[])[]): Promise<TestImage> {
  const image = new TestImage();
  await image.apply(layers);
  await image.check();
  return image;
}

const facts = (node: Node | undefined) => [node?.mode, node?.uid, node?.gid, node?.mtime.seconds];

test('owners, modes, times and link targets are those of the entry', async () => {
  const image = await imageOf([
    { name: 'd/', mode: 0o3777, uid: 100_000, gid: 5, mtime: 1000 },
    { name: 'd/ping', data: 'x', mode: 0o6755, uid: 7, gid: 8, mtime: -86_400 },
    { name: 'd/l', flag: '2', linkName: '/nowhere', uid: 9, gid: 9, mtime: 2000 },
    { name: 'far', data: '', pax: { uid: '3000000000', gid: '4294967294', mtime: '9999999999.123456789' } },
  ]);
  assert.deepEqual(facts(image.node('d')), [0o3777, 100_000, 5, 1000]);
  assert.deepEqual(facts(image.node('d/ping')), [0o6755, 7, 8, -86_400]);
  assert.deepEqual(facts(image.node('d/l')), [0o777, 9, 9, 2000]);
  assert.deepEqual(facts(image.node('far')), [0o644, 3_000_000_000, 4_294_967_294, 9_999_999_999]);
  assert.equal(image.node('far')?.mtime.nanoseconds, 123_456_789);
  const found = image.node('d/l');
  assert.equal(found?.kind === 'symlink' && found.target, '/nowhere');
});

test('names are bytes: blanks, newlines, quotes and what is no UTF-8', async () => {
  const names = ['a b', 'new\nline', 'it\'s "x"', '-rf', '\xff\xfe', 'n'.repeat(255)];
  const image = await imageOf(
    names.map((name) => ({ name: 'x', data: 'x', pax: { path: Buffer.from(name, 'latin1') } })),
  );
  assert.deepEqual(image.paths(), [...names].sort());
});

test('device nodes and fifos are made', async () => {
  const image = await imageOf([
    { name: 'dev/null', flag: '3', dev: [1, 3], mode: 0o666 },
    { name: 'dev/far', flag: '4', dev: [4095, 1_048_575], mode: 0o660, gid: 6 },
    { name: 'pipe\xff', flag: '6', mode: 0o622 },
  ]);
  const [zero, disk] = [image.node('dev/null'), image.node('dev/far')];
  assert.deepEqual(zero?.kind === 'character-device' && [zero.major, zero.minor, zero.mode], [1, 3, 0o666]);
  assert.deepEqual(disk?.kind === 'block-device' && [disk.major, disk.minor, disk.gid], [4095, 1_048_575, 6]);
  assert.equal(image.node('pipe\xff')?.kind, 'fifo');
});

test('a whiteout hides what lower layers have, and leaves no trace', async () => {
  const image = await imageOf(
    [file('a'), file('d/x'), file('d/deep/y'), file('kept')],
    [file('.wh.a', ''), file('.wh.d', ''), file('.wh.never-there', ''), file('no/such/.wh.folder', '')],
  );
  assert.deepEqual(image.paths(), ['kept']);
});

test('a whiteout that is a hard link to another one is a whiteout', async () => {
  const image = await imageOf([file('a'), file('b')], [file('.wh.a', ''), link('.wh.b', '.wh.a')]);
  assert.deepEqual(image.paths(), []);
});

test('a whiteout spares what its own layer has put there, before it or after it', async () => {
  const image = await imageOf(
    [file('before', 'old'), file('after', 'old'), file('d/old')],
    [
      ...[file('before', 'new'), file('.wh.before', ''), file('.wh.after', ''), file('after', 'new')],
      ...[file('d/new'), file('.wh.d', '')],
    ],
  );
  assert.deepEqual(image.paths(), ['after', 'before', 'd', 'd/new']);
  assert.deepEqual([await image.text('before'), await image.text('after')], ['new', 'new']);
});

test('an opaque folder hides its lower content, wherever its marker stands in the archive', async () => {
  for (const layer of [
    [file('d/.wh..wh..opq', ''), file('d/y')],
    [file('d/y'), file('d/.wh..wh..opq', '')],
  ]) {
    const image = await imageOf([file('d/x'), file('d/sub/z'), file('other')], layer);
    assert.deepEqual(image.paths(), ['d', 'd/y', 'other']);
  }
});

test('bookkeeping of AUFS is no part of the file system', async () => {
  const members = [file('.wh..wh.aufs', ''), file('.wh..wh.plnk/1.2', ''), { name: '.wh..wh.orph/' }, file('a')];
  assert.deepEqual((await imageOf(members)).paths(), ['a']);
});

test('hard links join files across layers and replace what has their name', async () => {
  const image = await imageOf(
    [file('f', 'data'), file('other'), file('dir/x'), file('same'), symlink('s', 'f')],
    [link('other', 'f'), link('dir', '/f'), link('same', './same'), link('s2', 's')],
  );
  assert.equal(new Set(['f', 'other', 'dir'].map((name) => image.node(name)?.ino)).size, 1);
  assert.equal(image.node('f')?.links, 3);
  assert.equal(await image.text('same'), 'same');
  assert.equal(image.node('s2')?.ino, image.node('s')?.ino);
});

test('replacing one name of a hard link leaves the other one alone', async () => {
  const image = await imageOf([file('a', 'old'), link('b', 'a')], [file('a', 'new')]);
  assert.deepEqual([await image.text('a'), await image.text('b')], ['new', 'old']);
  assert.deepEqual([image.node('a')?.links, image.node('b')?.links], [1, 1]);
});

test('folder, link and file replace one another across layers; the last one wins', async () => {
  const image = await imageOf(
    [file('target/t'), file('d/x')],
    [symlink('d', 'target')],
    [{ name: 'd/', mode: 0o700 }, file('d/y')],
  );
  assert.deepEqual(image.paths(), ['d', 'd/y', 'target', 'target/t']);
  assert.equal(image.node('d')?.mode, 0o700);
  await image.apply([[file('d', 'now a file')]]);
  await image.check();
  assert.equal(await image.text('d'), 'now a file');
});

test('an empty layer, a layer with only a mode, and an entry given twice are legal', async () => {
  const image = await imageOf(
    [{ name: 'd/', mode: 0o755 }, file('d/f', 'one'), file('d/f', 'two')],
    [],
    [{ name: 'd/', mode: 0o1777, mtime: 4000 }],
    [{ name: './', mode: 0o711 }],
  );
  assert.deepEqual(facts(image.node('d')), [0o1777, 0, 0, 4000]);
  assert.equal(await image.text('d/f'), 'two');
  assert.equal(image.tree.root.mode, 0o711);
});

test('folders without an entry of their own are made the same every time', async () => {
  const image = await imageOf([file('usr/lib/x')]);
  assert.deepEqual(facts(image.node('usr/lib')), [0o755, 0, 0, 0]);
});

test('zeros become holes, and the size stays right', async () => {
  const size = 2 * 2 ** 20;
  const data = Buffer.concat([Buffer.alloc(size), Buffer.from('end'), Buffer.alloc(size)]);
  const image = await imageOf([{ name: 'sparse', data }]);
  const found = image.node('sparse');
  assert.equal(found?.kind === 'file' && found.size, 2 * size + 3);
  assert.deepEqual(
    found?.extents.map(({ logical, count }) => [logical, count]),
    [[size / 4096, 1]],
  );
});

test('a link on the way is followed inside the root, as the guest would', async () => {
  const image = await imageOf(
    [file('usr/lib/a'), symlink('lib', 'usr/lib'), symlink('abs', '/usr'), symlink('up/top', '../../..')],
    [file('lib/b'), file('abs/lib/c'), file('lib/.wh.a', ''), file('up/top/z')],
  );
  assert.deepEqual(image.paths(), ['abs', 'lib', 'up', 'up/top', 'usr', 'usr/lib', 'usr/lib/b', 'usr/lib/c', 'z']);
  assert.equal(image.node('lib')?.kind, 'symlink');
});

test('lost+found, which ext4 needs, survives every layer and may have content', async () => {
  const image = await imageOf(
    [{ name: 'lost+found/', mode: 0o755 }, file('lost+found/x')],
    [file('.wh.lost+found', ''), file('.wh..wh..opq', '')],
  );
  const found = image.node('lost+found');
  assert.deepEqual(found?.kind === 'folder' && [found.ino, found.entries.size], [11, 0]);
  await assert.rejects(image.apply([[file('lost+found')]]), { code: 'image_invalid', message: /lost\+found/ });
});

for (const [what, members] of Object.entries({
  'a name with ..': [file('../escape')],
  'a hidden ..': [file('a/../../escape')],
  'a hard link to ..': [link('x', '../victim')],
  'a hard link out through a link': [symlink('s', '/etc'), link('x', 's/passwd')],
  'a hard link to a folder': [{ name: 'd/' }, link('x', 'd')],
  'a hard link in place of its own folder': [file('d/x'), link('d', 'd/x')],
  'a hard link below its own file': [file('f'), link('f/x', 'f')],
  'a hard link to nothing': [link('x', 'nothing')],
  'a chain of links without end': [symlink('a', 'b'), symlink('b', 'a'), file('a/x')],
  'a component of 300 bytes': [{ name: 'x', pax: { path: 'n'.repeat(300) }, data: '' }],
  'a link target of 4096 bytes': [{ name: 'x', flag: '2', pax: { linkpath: 'n'.repeat(4096) } }],
  'a link without a target': [symlink('x', '')],
  'a device number out of range': [{ name: 'x', flag: '3', dev: [5000, 0] }],
  'an owner out of range': [{ name: 'x', data: '', pax: { uid: '4294967295' } }],
  'a root that is a file': [{ name: '/', flag: '0', data: 'x', pax: { path: '.' } }],
  'attributes that no file can have': [
    {
      name: 'x',
      data: '',
      pax: Object.fromEntries([1, 2, 3].map((n) => [`SCHILY.xattr.user.${n}`, 'v'.repeat(2000)])),
    },
  ],
  'an access control list that is none': [
    { name: 'x', data: '', pax: { 'SCHILY.xattr.system.posix_acl_access': 'x' } },
  ],
  'folders without end': [
    { name: 'd', data: '', pax: { path: `${'d/'.repeat(900)}s` }, flag: '2', linkName: '.' },
    { name: 'd', data: '', pax: { path: `${'d/'.repeat(900)}s/${'d/'.repeat(900)}x` } },
  ],
} satisfies Record<string, TestMember[]>)) {
  test(`refused: ${what}`, async () => {
    await assert.rejects(new TestImage().apply([members]), { code: 'image_invalid', message: /layer entry/ });
  });
}

test('the totals of an image are bounded', async () => {
  const limits = { entries: 3, devices: 1, bytes: 100, metadataBytes: 2000 };
  const over = async (members: TestMember[], message: RegExp) => {
    await assert.rejects(new TestImage().apply([members], limits), { code: 'image_invalid', message });
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
  await over(
    [symlink('a', 't'.repeat(90)), { name: 'x', data: '', pax: { path: 'n'.repeat(1990) } }],
    /bytes of names/,
  );
});

test('what does not fit on the disk is refused, in bytes and in files', async () => {
  const small = () => new TestImage(16 * 2 ** 20);
  const big = { name: 'big', data: Buffer.alloc(12 * 2 ** 20, 'x') };
  await assert.rejects(small().apply([[big]]), {
    code: 'image_invalid',
    message: /does not fit on a disk of 16777216/,
  });
  const many = Array.from({ length: 8200 }, (_, at) => file(`f${at}`, ''));
  await assert.rejects(small().apply([many]), { code: 'image_invalid', message: /more files than fit/ });
  const barely = small();
  await barely.apply([
    [{ name: 'big', data: Buffer.alloc(9 * 2 ** 20, 'x') }],
    [file('.wh.big')],
    [{ ...big, data: big.data.subarray(0, 8 * 2 ** 20) }],
  ]);
  await barely.check();
});

test('freed blocks and inodes are used again when there are no others', async () => {
  const image = new TestImage(16 * 2 ** 20);
  for (let round = 0; round < 4; round++) {
    const files = Array.from({ length: 600 }, (_, at) => file(`f${at}`, `${round} `.repeat(at * 8)));
    await image.apply([[file('.wh.d', ''), ...files.map((one) => ({ ...one, name: `e${round % 2}/${one.name}` }))]]);
    await image.apply([[file(`.wh.e${(round + 1) % 2}`, '')]]);
    await image.check();
  }
  assert.equal(await image.text('e1/f100'), '3 '.repeat(800));
});
