import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { memorySource } from '../blob/memory-source.ts';
import { isCode } from '../testing/is-code.ts';
import { memorySink } from '../testing/memory-sink.ts';
import { decodeZFileHeader, encodeZFileHeader } from './header.ts';
import { type ZFileForm, ZFileSink } from './sink.ts';
import { openZFile } from './source.ts';

const TEXT = Buffer.from('0123456789abcdef'.repeat(625)).subarray(0, 10_000);
const FORMS: ZFileForm[] = [
  { compression: 'lz4', blockSize: 4096 },
  { compression: 'lz4', blockSize: 65_536 },
  { compression: 'zstd', blockSize: 4096 },
  { compression: 'zstd', blockSize: 65_536 },
];

async function packed(bytes: Uint8Array, form: ZFileForm): Promise<Buffer> {
  const out = memorySink();
  const sink = await ZFileSink.begin(out, form);
  for (let at = 0; at < bytes.length; at += 1000) await sink.append(bytes.subarray(at, at + 1000));
  await sink.finish();
  return out.bytes();
}

test('a small lz4 file is the one that the reference writes', async () => {
  const bytes = await packed(TEXT, { compression: 'lz4', blockSize: 4096 });
  const table = [0, 4, 8].map((at) => bytes.readUInt32LE(641 + at));
  assert.equal(bytes.length, 1165);
  assert.deepEqual(table, [46, 46, 37]);
  const header = decodeZFileHeader(bytes);
  assert.equal(header.tableOffset, 641);
  assert.equal(header.tableCrc.toString(16), '96090957');
  assert.equal(bytes.readUInt32LE(28).toString(16), 'c9784e9a');
  assert.equal(bytes.readUInt32LE(32), 0x1b);
  assert.equal(bytes.readUInt32LE(653 + 28).toString(16), '39b89bbe');
  assert.equal(bytes.readUInt32LE(653 + 32), 0x16);
  assert.equal(
    createHash('sha256').update(bytes).digest('hex'),
    'c1f1e950f27e1bd550fdc45941d07b148946cc4160d9549c23bc07c739767b85',
  );
});

for (const form of FORMS) {
  test(`every range of a ${form.compression} file with blocks of ${form.blockSize} reads as what was packed`, async () => {
    const bytes = Buffer.concat([TEXT, Buffer.alloc(150_000), TEXT, Buffer.from('end')]);
    const blob = await openZFile(memorySource(await packed(bytes, form)));
    assert.equal(blob.size, bytes.length);
    for (const [from, to] of [
      [0, bytes.length],
      [0, 1],
      [4095, 4097],
      [4096, 8192],
      [bytes.length - 1, bytes.length],
      [9_000, 70_000],
      [65_536, 131_072],
      [5, 5],
    ] as const) {
      for (let again = 0; again < 2; again++) {
        const target = Buffer.alloc(to - from, 'x');
        assert.equal(blob.readSync(target, from), true);
        assert.ok(target.equals(bytes.subarray(from, to)), `${from}..${to}`);
        await blob.read(target.fill('y'), from);
        assert.ok(target.equals(bytes.subarray(from, to)), `${from}..${to}`);
      }
    }
    assert.throws(() => blob.readSync(Buffer.alloc(2), bytes.length - 1), RangeError);
    await blob.close();
  });
}

test('an empty file packs to one without blocks', async () => {
  const blob = await openZFile(memorySource(await packed(Buffer.alloc(0), { compression: 'lz4', blockSize: 4096 })));
  assert.equal(blob.size, 0);
  assert.equal(blob.readSync(Buffer.alloc(0), 0), true);
});

test('a byte changed anywhere but in unused space of a header is refused by name', async () => {
  const bytes = await packed(TEXT, { compression: 'lz4', blockSize: 4096 });
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 0x20;
    const read = async () => {
      const blob = await openZFile(memorySource(damaged));
      await blob.read(Buffer.alloc(blob.size), 0);
    };
    await assert.rejects(read, isCode('layer_corrupt'), `byte ${at}`);
  }
});

test('a file that was written as a stream is read by its trailer', async () => {
  const bytes = await packed(TEXT, { compression: 'zstd', blockSize: 4096 });
  // No final values, no digest, garbage where nobody looks: as in files of the first years.
  bytes.fill(0xee, 40, 68);
  bytes.fill(0xee, 28, 32);
  bytes.writeUInt32LE(0x3, 32);
  bytes.fill(0xee, 100, 512);
  const blob = await openZFile(memorySource(bytes));
  const target = Buffer.alloc(TEXT.length);
  await blob.read(target, 0);
  assert.ok(target.equals(TEXT));
});

test('numbers that do not fit each other or the file are refused before memory is taken for them', async () => {
  const bytes = await packed(TEXT, { compression: 'lz4', blockSize: 4096 });
  const good = decodeZFileHeader(bytes);
  const lies = [
    { blocks: 2 ** 24, originalSize: 2 ** 36 },
    { blocks: 2 ** 40, originalSize: 2 ** 52 },
    { blocks: 4 },
    { originalSize: 20_000 },
    { tableOffset: 511 },
    { tableOffset: 2 ** 40 },
    { tableOffset: bytes.length - 512 - 11 },
  ];
  for (const lie of lies) {
    const changed = Buffer.from(bytes);
    encodeZFileHeader({ ...good, ...lie, isTrailer: false }).copy(changed);
    await assert.rejects(openZFile(memorySource(changed)), isCode('layer_corrupt'), JSON.stringify(lie));
  }
});
