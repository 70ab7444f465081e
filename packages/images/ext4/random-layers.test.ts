import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fsck, MemoryDisk, TestImage } from '../testing/ext4.ts';
import { type DiskFile, Ext4Reader } from '../testing/ext4-reader.ts';
import { PlainTree } from '../testing/plain-tree.ts';
import { pieces, type TestMember, tar } from '../testing/tar.ts';
import { applyLayer } from './apply/layer.ts';
import { rootIdentity } from './identity.ts';
import { Tree } from './model/tree.ts';
import { decodeTree } from './sidecar/decode.ts';
import { encodeTree } from './sidecar/encode.ts';
import { writeChanges } from './write-changes.ts';

const SIZE = 32 * 2 ** 20;

const name = fc.constantFrom('a', 'b', 'c', 'long name '.repeat(20));
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const attributes = fc.record({
  mode: fc.constantFrom(0o644, 0o755, 0o4711, 0),
  uid: fc.constantFrom(0, 1000, 70_000),
  mtime: fc.integer({ min: -1000, max: 2 ** 31 }),
});
const content = fc.tuple(fc.constantFrom(0, 1, 4095, 4096, 9000, 30_000), fc.string({ minLength: 1, maxLength: 3 }));
const member: fc.Arbitrary<TestMember> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(path, attributes, content).map(([at, more, [size, text]]) => file(at, more, size, text)),
  },
  { weight: 2, arbitrary: fc.tuple(path, attributes).map(([at, more]) => ({ ...more, name: `${at}/` })) },
  // Nothing is ever put below these, since the plain model follows no links.
  {
    weight: 1,
    arbitrary: fc
      .tuple(path, path)
      .map(([at, to]) => ({ name: `${at}-link`, flag: '2', linkName: `${to}-target`.slice(0, 90) })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(path, path).map(([at, to]) => ({ name: 'x', pax: { path: at, linkpath: to }, flag: '1' })),
  },
  { weight: 2, arbitrary: path.map((at) => file(at.replace(/([^/]*)$/, '.wh.$1'), {}, 0, '')) },
  { weight: 1, arbitrary: path.map((at) => file(`${at}/.wh..wh..opq`, {}, 0, '')) },
);

function file(at: string, more: object, size: number, text: string): TestMember {
  return { ...more, name: at, data: text.repeat(Math.ceil(size / Math.max(1, text.length))).slice(0, size) };
}

/** Names of any length: the header alone takes 100 bytes. */
const withLongName = (one: TestMember): TestMember => ({
  ...one,
  pax: { path: one.name, ...(one.linkName === undefined ? {} : { linkpath: one.linkName }) },
});

const plainName = (one: TestMember): TestMember =>
  one.pax === undefined ? one : { ...one, name: String(one.pax.path), linkName: String(one.pax.linkpath) };

test('random layers give on the disk what the plain rules say, and the same bytes with and without a kept model', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(member, { maxLength: 25 }), { minLength: 1, maxLength: 5 }), async (layers) => {
      const plain = new PlainTree();
      const image = new TestImage(SIZE);
      const second = new MemoryDisk();
      let kept = Tree.create(rootIdentity('test', SIZE));
      for (const members of layers) {
        const archive = tar(...plain.apply(members.map(plainName)).map(withLongName));
        await applyLayer(image.tree, pieces(archive), image.disk);
        await writeChanges(image.tree, image.disk);
        kept = kept.isNew ? kept : decodeTree(encodeTree(kept));
        await applyLayer(kept, pieces(archive), second);
        await writeChanges(kept, second);
      }
      assert.deepEqual(second.blocks, image.disk.blocks);
      compare(new Ext4Reader(image.disk).tree(), plain);
      await using disk = await image.toFile();
      await fsck(disk.path);
    }),
    { numRuns: process.env.AENV_SOAK === '1' ? 1000 : 15 },
  );
});

function compare(found: Map<string, DiskFile>, plain: PlainTree): void {
  for (const hidden of ['', 'lost+found']) found.delete(hidden);
  assert.deepEqual([...found.keys()].sort(), [...plain.files.keys()].sort());
  const inodes = new Map<unknown, number>();
  for (const [at, expected] of plain.files) {
    const one = found.get(at);
    const type = { '0': 0o100000, '2': 0o120000, '5': 0o040000 }[expected.flag] ?? 0;
    const mode = expected.flag === '2' ? 0o777 : expected.mode;
    assert.deepEqual([one?.mode, one?.uid, one?.mtime], [type | mode, expected.uid, [expected.mtime, 0]], at);
    if (expected.flag === '5') continue;
    assert.equal(one?.content.toString('latin1'), expected.data, at);
    const names = [...plain.files.values()].filter((other) => other === expected).length;
    assert.equal(one?.links, names, at);
    assert.equal(inodes.get(expected) ?? one?.ino, one?.ino, at);
    inodes.set(expected, one?.ino ?? 0);
  }
}
