import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { member, paxHeader, pieces, type TestMember, tar } from '../testing/tar.ts';
import type { TarEntry } from './entry.ts';
import { readTar } from './reader.ts';

interface Read {
  readonly entry: TarEntry;
  readonly data: string;
}

async function readAll(archive: Buffer, piece?: number): Promise<Read[]> {
  const found: Read[] = [];
  for await (const { entry, content } of readTar(pieces(archive, piece))) {
    const chunks: Buffer[] = [];
    for await (const chunk of content()) chunks.push(chunk);
    found.push({ entry, data: Buffer.concat(chunks).toString('latin1') });
  }
  return found;
}

const one = async (item: TestMember) => (await readAll(tar(item)))[0]?.entry;
const refused = (archive: Buffer, message: RegExp) =>
  assert.rejects(readAll(archive), { code: 'image_invalid', message });

test('files, folders, links and devices come with all that their header says', async () => {
  const found = await readAll(
    tar(
      { name: 'd/', mode: 0o1777, uid: 1, gid: 2 },
      { name: 'd/f', data: 'hello', mode: 0o4755, mtime: 12 },
      { name: 'l', flag: '2', linkName: '../x' },
      { name: 'h', flag: '1', linkName: 'd/f' },
      { name: 'c', flag: '3', dev: [1, 3] },
      { name: 'b', flag: '4', dev: [8, 1] },
      { name: 'p', flag: '6' },
      { name: 'last', flag: '7', data: 'x'.repeat(1000) },
    ),
  );
  const types = found.map(({ entry }) => entry.type);
  assert.deepEqual(types, ['directory', 'file', 'symlink', 'link', 'character-device', 'block-device', 'fifo', 'file']);
  assert.deepEqual([found[0]?.entry.mode, found[0]?.entry.uid, found[0]?.entry.gid], [0o1777, 1, 2]);
  assert.deepEqual([found[1]?.data, found[1]?.entry.mode, found[1]?.entry.mtime.seconds], ['hello', 0o4755, 12]);
  assert.equal(found[2]?.entry.linkName, '../x');
  assert.deepEqual([found[4]?.entry.devMajor, found[4]?.entry.devMinor], [1, 3]);
  assert.equal(found[7]?.data.length, 1000);
});

test('content that nobody reads is skipped', async () => {
  const names: string[] = [];
  for await (const { entry } of readTar(pieces(tar({ name: 'a', data: 'x'.repeat(5000) }, { name: 'b', data: 'y' })))) {
    names.push(entry.name);
  }
  assert.deepEqual(names, ['a', 'b']);
});

test('where chunks end makes no difference', async () => {
  const archive = tar({ name: 'a', data: 'x'.repeat(700) }, { name: 'long', pax: { path: 'p'.repeat(300) } });
  const whole = await readAll(archive, archive.length);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3000 }), async (size) => {
      assert.deepEqual(await readAll(archive, size), whole);
    }),
    { numRuns: 30 },
  );
});

test('long names of PAX and GNU tar are exact, bytes that are no UTF-8 included', async () => {
  const long = `${'d'.repeat(150)}/${'f'.repeat(149)}`;
  assert.equal((await one({ name: 'short', pax: { path: long } }))?.name, long);
  const bytes = '\xff\xfe\x80name';
  assert.equal((await one({ name: 'short', pax: { path: Buffer.from(bytes, 'latin1') } }))?.name, bytes);
  assert.equal((await one({ name: '\xc3\x28' }))?.name, '\xc3\x28');
  const link = 'l'.repeat(120);
  const gnu = Buffer.concat([
    member({ name: '././@LongLink', flag: 'K', data: `${link}\0`, magic: 'gnu' }),
    member({ name: '././@LongLink', flag: 'L', data: `${long}\0`, magic: 'gnu' }),
    tar({ name: long, flag: '2', linkName: link, magic: 'gnu' }),
  ]);
  const [found] = await readAll(gnu);
  assert.deepEqual([found?.entry.name, found?.entry.linkName], [long, link]);
});

test('PAX numbers win over the header, fractions and times before 1970 included', async () => {
  const entry = await one({ name: 'f', data: 'abc', pax: { uid: '3000000000', gid: '100000', mtime: '-5.25' } });
  assert.deepEqual(
    [entry?.uid, entry?.gid, entry?.mtime],
    [3_000_000_000, 100_000, { seconds: -6, nanoseconds: 750_000_000 }],
  );
  assert.equal((await one({ name: 'f', mtime: -86_400 }))?.mtime.seconds, -86_400);
});

test('a global PAX header holds for all members behind it, until a local one says otherwise', async () => {
  const archive = Buffer.concat([
    paxHeader({ uid: '7', comment: 'x' }, 'g'),
    member({ name: 'a' }),
    tar({ name: 'b', pax: { uid: '8' } }, { name: 'c', uid: 5 }, { name: 'd', uid: 5, pax: { uid: '' } }),
  ]);
  assert.deepEqual(
    (await readAll(archive)).map(({ entry }) => entry.uid),
    [7, 8, 7, 5],
  );
});

test('extended attributes are taken as bytes, in both spellings', async () => {
  const capability = Buffer.from('0100000200200000000000000000000000000080', 'hex');
  const entry = await one({
    name: 'ping',
    pax: {
      'SCHILY.xattr.security.capability': capability,
      'LIBARCHIVE.xattr.user.a%20b': Buffer.from('value').toString('base64'),
    },
  });
  assert.deepEqual(entry?.xattrs.get('security.capability'), capability);
  assert.deepEqual(entry?.xattrs.get('user.a b'), Buffer.from('value'));
});

test('links and folders have no content, whatever their header says', async () => {
  const found = await readAll(tar({ name: 'l', flag: '1', linkName: 'f', size: 512 }, { name: 'f', data: 'x' }));
  assert.deepEqual(
    found.map(({ entry }) => [entry.name, entry.size]),
    [
      ['l', 0],
      ['f', 1],
    ],
  );
});

test('an archive may end without an end marker, and with padding behind it', async () => {
  assert.equal((await readAll(member({ name: 'a' }))).length, 1);
  assert.equal((await readAll(Buffer.concat([tar({ name: 'a' }), Buffer.alloc(9000)]))).length, 1);
  assert.deepEqual(await readAll(Buffer.alloc(0)), []);
});

test('damage and what is not supported is refused by name', async () => {
  const good = tar({ name: 'file', data: 'x'.repeat(600) });
  await refused(good.subarray(0, 300), /middle of a header/);
  await refused(good.subarray(0, 900), /middle of a file/);
  await refused(good.subarray(0, 1200), /middle of a block/);
  const flipped = Buffer.from(good);
  flipped[3] = 0x58;
  await refused(flipped, /checksum/);
  await refused(Buffer.from('not a tar archive'.repeat(100)), /checksum/);
  await refused(tar({ name: 'x', flag: 'Z' }), /"x" has the unknown type "Z"/);
  await refused(tar({ name: 'sparse', flag: 'S', data: 'x' }), /sparse member has another size/);
  await refused(tar({ name: 'x', pax: { path: 'a\0b' } }), /zero byte/);
  await refused(tar({ name: 'x', pax: { path: 'a'.repeat(5000) } }), /longer than 4096/);
  await refused(tar({ name: 'x', pax: { uid: 'root' } }), /uid is not a number/);
  await refused(tar({ name: 'x', pax: { size: '-1' } }), /size is out of range/);
  await refused(tar({ name: 'x', flag: 'x', data: '12 path' }), /PAX header is damaged/);
  await refused(tar({ name: 'x', flag: 'x', size: 2 ** 30 }), /extended header holds 1073741824 bytes/);
  await refused(tar(...Array.from({ length: 40 }, () => ({ name: 'x', flag: 'L', data: 'y' }))), /too many extended/);
});

test('records are bounded, those of one header and those that many global ones leave for the rest', async () => {
  const records = (from: number, count: number, value = '') =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${from + index}`, `${value}x`]));
  await refused(tar({ name: 'x', pax: records(0, 5000) }), /PAX header is damaged/);
  const few = Array.from({ length: 3 }, (_, at) => [paxHeader(records(at * 2000, 2000), 'g'), member({ name: 'x' })]);
  await refused(Buffer.concat(few.flat()), /too many records in global headers/);
  const large = Array.from({ length: 3 }, (_, at) => paxHeader(records(at, 1, 'y'.repeat(400_000)), 'g'));
  await refused(Buffer.concat(large), /too many records in global headers/);
  const same = Array.from({ length: 3 }, () => paxHeader(records(0, 1, 'y'.repeat(400_000)), 'g'));
  assert.equal((await readAll(Buffer.concat([...same.slice(0, 2), tar({ name: 'x' })]))).length, 1);
});

test('no bytes make the reader throw anything else than its own error', async () => {
  const base = tar({ name: 'a/b', data: 'content', pax: { path: 'p', mtime: '1.5' } }, { name: 'l', flag: '2' });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { minLength: 1, maxLength: 20 }),
      fc.nat(base.length),
      async (edits, end) => {
        const damaged = Buffer.from(base.subarray(0, end));
        for (const [at, byte] of edits) if (at < damaged.length) damaged[at] = byte;
        await readAll(damaged).catch((error: { code?: unknown }) => assert.equal(error.code, 'image_invalid'));
      },
    ),
    { numRuns: 300 },
  );
});
