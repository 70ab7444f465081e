import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encoderOf } from '../../zfile/codec.ts';
import { type Compression, encodeZFileHeader } from '../../zfile/header.ts';
import { commitLayers } from '../commit/commit.ts';
import type { LayerForm } from '../commit/layer-file.ts';
import { fileLayer, LayerPool } from '../stack/pool.ts';
import { createWritableLayer } from '../writable/open.ts';

/** Bytes of the disk that all samples describe. */
export const SAMPLE_SIZE = 2 ** 20;

const UUID = '11111111-2222-4333-8444-555555555555';

export interface Sample {
  readonly name: string;
  readonly bytes: Buffer;
}

const FORMS: Record<string, LayerForm> = {
  committed: {},
  'in a tar': { tar: true },
  'packed with lz4': { zfile: { compression: 'lz4', blockSize: 4096 } },
  'packed with zstd in a tar': { zfile: { compression: 'zstd', blockSize: 16_384 }, tar: true },
};

/** The same small layer in every form that a layer is kept in, and the two files of a writable one. */
export async function makeSamples(folder: string): Promise<{
  readonly layers: Sample[];
  readonly data: Buffer;
  readonly index: Buffer;
  readonly content: Buffer;
}> {
  const layer = await createWritableLayer({
    folder: join(folder, 'sample'),
    pendingPath: join(folder, 'sample-pending'),
    uuid: UUID,
    virtualSize: SAMPLE_SIZE,
    userTag: 'a sample',
  });
  const content = Buffer.alloc(SAMPLE_SIZE);
  for (const [text, offset, length] of [
    ['first ', 0, 8192],
    ['second ', 65_536, 4096],
    ['third ', 4096, 1536],
    ['fourth ', SAMPLE_SIZE - 4096, 4096],
  ] as const) {
    const data = Buffer.alloc(length, text);
    layer.write(data, offset);
    data.copy(content, offset);
  }
  layer.zero(66_560, 512);
  content.fill(0, 66_560, 67_072);
  layer.zero(131_072, 65_536);
  await layer.flush('strict');
  const data = await readFile(join(folder, 'sample/writable_data'));
  const index = await readFile(join(folder, 'sample/writable_index'));
  const frozen = layer.freeze();
  const { path } = await frozen.durable;
  await frozen.close();
  const layers: Sample[] = [{ name: 'sealed', bytes: await readFile(path) }];
  for (const [name, form] of Object.entries(FORMS)) {
    const target = join(folder, name.replaceAll(' ', '-'));
    await commitLayers(new LayerPool(), { layers: [fileLayer(path)], isBottom: false, path: target, uuid: UUID, form });
    layers.push({ name, bytes: await readFile(target) });
  }
  const committed = layers[1]?.bytes ?? Buffer.alloc(0);
  for (const compression of ['lz4', 'zstd'] as const) {
    layers.push({
      name: `packed with ${compression}, without checksums`,
      bytes: withoutChecksums(committed, compression),
    });
  }
  return { layers, data, index, content };
}

/** A ZFile that no checksum protects, so that damage gets to what is behind the checksums. */
function withoutChecksums(bytes: Buffer, compression: Compression): Buffer {
  const blockSize = 4096;
  const encode = encoderOf(compression);
  const blocks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += blockSize) {
    blocks.push(Buffer.from(encode(bytes.subarray(at, at + blockSize))));
  }
  const table = Buffer.alloc(blocks.length * 4);
  for (const [i, block] of blocks.entries()) table.writeUInt32LE(block.length, i * 4);
  const data = Buffer.concat(blocks);
  const [header, trailer] = [false, true].map((isTrailer) => {
    const fields = { blockSize, compression, isTrailer, verify: false, tableCrc: 0 };
    const end = encodeZFileHeader({
      ...fields,
      tableOffset: 512 + data.length,
      blocks: blocks.length,
      originalSize: bytes.length,
    });
    end.writeUInt32LE(end.readUInt32LE(32) & ~16, 32);
    return end;
  });
  return Buffer.concat([header ?? data, data, table, trailer ?? data]);
}
