import { crc32 } from 'node:zlib';
import type { BlobSource } from '@aenv/block/blob/contract.ts';
import { openFile } from '@aenv/block/blob/file-source.ts';
import { openSealedLayer, type SealedLayer } from '@aenv/block/layers/stack/sealed-layer.ts';
import { HEADER_SIZE } from '@aenv/block/lsmt/format.ts';
import { ZEROED } from '@aenv/block/lsmt/segment-index.ts';
import { type MemorySink, PAGE_SIZE } from '@aenv/vmm/contract/micro-vm.ts';
import type { MemoryDelta } from '../../contract.ts';
import { asCorrupt, corrupt } from '../corrupt.ts';
import { SECTOR_SIZE } from './delta-writer.ts';

const CHUNK = 2 ** 20;
const SECTORS_OF_PAGE = PAGE_SIZE / SECTOR_SIZE;

/** A memory delta, opened: its index is checked, its data is not yet. */
export class DeltaReader {
  readonly #name: string;
  readonly #layer: SealedLayer;
  readonly #crc32: number | undefined;

  private constructor(name: string, layer: SealedLayer, crc: number | undefined) {
    this.#name = name;
    this.#layer = layer;
    this.#crc32 = crc;
  }

  /**
   * @param name of the artefact, for people
   * @param memoryBytes of the guest
   * @param expected absent: what this process has just written
   * @throws AenvError `snapshot_corrupt`, `io_failed`
   */
  static async open(
    path: string,
    name: string,
    memoryBytes: number,
    expected?: Pick<MemoryDelta, 'sizeBytes' | 'crc32'>,
  ): Promise<DeltaReader> {
    let source: BlobSource | undefined;
    try {
      source = await openFile(path);
      if (expected !== undefined && source.size !== expected.sizeBytes) {
        throw corrupt(name, `it has ${source.size} bytes, not ${expected.sizeBytes}`);
      }
      const layer = await openSealedLayer(source);
      if (layer.header.virtualSize !== memoryBytes) throw corrupt(name, 'it is of a memory of another size');
      checkOrder(layer, name, memoryBytes);
      return new DeltaReader(name, layer, expected?.crc32);
    } catch (error) {
      await source?.close();
      throw asCorrupt(name, error);
    }
  }

  /**
   * Gives the pages that differ from the base, in ascending order. The file is read from its begin to its end meanwhile,
   * so its checksum costs no further read; when it does not hold, what was given must not be used.
   * @throws AenvError `snapshot_corrupt`, `io_failed`, what the sink throws
   */
  readonly give = async (sink: MemorySink): Promise<void> => {
    const { source, index } = this.#layer;
    // The sink may still be busy with what the other buffer holds.
    const buffers = [Buffer.allocUnsafe(CHUNK), Buffer.allocUnsafe(CHUNK)] as const;
    let bytes: Buffer = buffers[0].subarray(0, 0);
    let [begin, end, crc] = [0, 0, 0];
    const readOn = async () => {
      begin = end;
      bytes = buffers[(begin / CHUNK) % 2 === 0 ? 0 : 1].subarray(0, Math.min(CHUNK, source.size - begin));
      await source.read(bytes, begin);
      crc = crc32(bytes, crc);
      end = begin + bytes.length;
    };
    for (let i = 0; i < index.count; i++) {
      const offset = (index.offsets[i] as number) * SECTOR_SIZE;
      const length = (index.lengths[i] as number) * SECTOR_SIZE;
      if (((index.marks[i] as number) & ZEROED) !== 0) {
        await sink.zero(offset, length);
        continue;
      }
      const place = (index.places[i] as number) * SECTOR_SIZE;
      for (let done = 0; done < length; ) {
        while (place + done >= end) await readOn();
        const part = bytes.subarray(place + done - begin, place + length - begin);
        const given = sink.data(offset + done, part);
        if (given !== undefined) await given;
        done += part.length;
      }
    }
    while (end < source.size) await readOn();
    if (this.#crc32 !== undefined && crc !== this.#crc32) throw corrupt(this.#name, 'its checksum does not hold');
  };

  async close(): Promise<void> {
    await this.#layer.source.close();
  }
}

/** Whole pages, and their data one after the other from the header to the index: so every byte is read, and once. */
function checkOrder({ index, header }: SealedLayer, name: string, memoryBytes: number): void {
  let place = HEADER_SIZE / SECTOR_SIZE;
  for (let i = 0; i < index.count; i++) {
    const offset = index.offsets[i] as number;
    const length = index.lengths[i] as number;
    const isZero = ((index.marks[i] as number) & ZEROED) !== 0;
    const isWhole = offset % SECTORS_OF_PAGE === 0 && length % SECTORS_OF_PAGE === 0;
    const isInside = (offset + length) * SECTOR_SIZE <= memoryBytes;
    if (!isWhole || !isInside || (!isZero && index.places[i] !== place)) {
      throw corrupt(name, `entry ${i} of its index is not one that is written`);
    }
    if (!isZero) place += length;
  }
  if (place * SECTOR_SIZE !== header.indexOffset) throw corrupt(name, 'there is more in it than its index says');
}
