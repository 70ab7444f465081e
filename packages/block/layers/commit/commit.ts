import { SECTOR_SIZE } from '../contract.ts';
import type { FlatStack } from '../stack/flat-stack.ts';
import type { LayerPool, LayerRef } from '../stack/pool.ts';
import { Stack } from '../stack/stack.ts';
import { holeToFill, joined } from './holes.ts';
import { LayerWriter, type NewLayerFile, type WrittenLayer } from './layer-writer.ts';

export interface CommitOptions extends Omit<NewLayerFile, 'virtualSize' | 'diskSize'> {
  /** Neighbours of one chain, the lowest first; a single layer is rewritten without what is no longer read. */
  readonly layers: readonly LayerRef[];
  /** Nothing is below the lowest one: what reads as zeros anyway need not be said. */
  readonly isBottom: boolean;
  /** bytes; that of the layers if absent */
  readonly virtualSize?: number;
  /**
   * Most segments, padding included; `MAX_EXCHANGED_ENTRIES` for readers elsewhere. A bottom layer that would have more
   * gets zeros written into its smallest holes, until it has fewer; any other is refused.
   */
  readonly maxSegments?: number;
}

/** Bytes that are copied in one go. */
const CHUNK = 2 ** 20;

/**
 * Merges layers of a chain into one committed layer: live data only, in the order of the disk. It reads like the layers
 * that it is made of. Nothing is left behind when it fails or is aborted.
 * @throws AenvError `layer_corrupt`, `layer_unavailable`, `no_space`, `io_failed`, `layer_too_scattered`
 */
export async function commitLayers(
  pool: LayerPool,
  options: CommitOptions,
  signal?: AbortSignal,
): Promise<WrittenLayer> {
  const chain = await pool.openChain(options.layers, signal);
  try {
    const { flat } = chain.value;
    const virtualSize = options.virtualSize ?? chain.value.virtualSize;
    const diskSize = virtualSize === 0 ? endOf(flat) : virtualSize;
    const writer = await LayerWriter.create({ ...options, virtualSize, diskSize });
    try {
      const hole = options.isBottom ? holeToFill(flat.index, options.maxSegments ?? Number.POSITIVE_INFINITY) : 0;
      await copy(flat, diskSize, writer, options.isBottom, hole, signal);
      return await writer.finish();
    } catch (error) {
      await writer.abort();
      throw error;
    }
  } finally {
    await chain.close();
  }
}

async function copy(
  flat: FlatStack,
  diskSize: number,
  writer: LayerWriter,
  isBottom: boolean,
  hole: number,
  signal?: AbortSignal,
): Promise<void> {
  const stack = new Stack(diskSize, flat, [], []);
  const buffer = Buffer.allocUnsafe(CHUNK);
  for (const range of joined(stack.dataRanges(0, diskSize), hole)) {
    for (let done = 0; done < range.length; done += CHUNK) {
      signal?.throwIfAborted();
      const chunk = buffer.subarray(0, Math.min(CHUNK, range.length - done));
      if (!stack.readSync(chunk, range.offset + done)) await stack.read(chunk, range.offset + done, signal);
      await writer.append(chunk, range.offset + done);
    }
  }
  if (isBottom) return;
  flat.index.forEach(0, diskSize / SECTOR_SIZE, (sector, count, _place, zeroed) => {
    if (zeroed) writer.zero(sector * SECTOR_SIZE, count * SECTOR_SIZE);
  });
}

/** End of the last segment, in bytes: the least that the disk can have. */
function endOf({ index }: FlatStack): number {
  const last = index.count - 1;
  return last < 0 ? 0 : ((index.offsets[last] as number) + (index.lengths[last] as number)) * SECTOR_SIZE;
}
