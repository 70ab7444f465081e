import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from '../../blob/contract.ts';
import { readAll } from '../../blob/read-all.ts';
import { HEADER_SIZE, MAX_EXCHANGED_ENTRIES, MAX_SECTORS, SEGMENT_SIZE } from '../../lsmt/format.ts';
import { decodeHeader, type LayerHeader } from '../../lsmt/header.ts';
import { parseSealedIndex } from '../../lsmt/sealed-index.ts';
import type { SegmentIndex } from '../../lsmt/segment-index.ts';
import { inSlices } from '../../lsmt/slices.ts';
import { SECTOR_SIZE } from '../contract.ts';

/** A sealed or committed layer, opened: its bytes and where they belong on the disk. */
export interface SealedLayer {
  readonly source: BlobSource;
  readonly index: SegmentIndex;
  /** of the trailer, which is what counts */
  readonly header: LayerHeader;
}

export interface OpenLayerLimits {
  /** entries of the index, padding included; `MAX_EXCHANGED_ENTRIES` if absent, as for what comes from elsewhere */
  readonly maxEntries?: number;
}

/**
 * Reads trailer and index of an LSMT blob (out of its wrappers already). The layer takes over the source: closing it is
 * for whoever closes the layer; after an error it is still the caller's.
 * @throws AenvError `layer_corrupt`, `layer_unavailable`
 */
export async function openSealedLayer(
  source: BlobSource,
  limits: OpenLayerLimits = {},
  signal?: AbortSignal,
): Promise<SealedLayer> {
  if (source.size < 2 * HEADER_SIZE) throw corrupt('it is shorter than header and trailer');
  if (source.size / SECTOR_SIZE > MAX_SECTORS) throw corrupt('it is larger than 2 TiB');
  const first = decodeHeader(await readAll(source, 0, HEADER_SIZE, signal));
  if (!first.isHeader || !first.isDataFile) throw corrupt('it does not begin with the header of a data file');
  if (first.isSparse) throw corrupt('it is a sparse layer, which has no index');
  const trailerAt = source.size - HEADER_SIZE;
  const header = decodeHeader(await readAll(source, trailerAt, HEADER_SIZE, signal));
  if (header.isHeader || !header.isDataFile || !header.isSealed) throw corrupt('it does not end with a trailer');
  const { indexOffset, indexCount, virtualSize } = header;
  if (indexCount > (limits.maxEntries ?? MAX_EXCHANGED_ENTRIES)) throw corrupt(`its index has ${indexCount} entries`);
  if (virtualSize / SECTOR_SIZE > MAX_SECTORS) throw corrupt('its disk is larger than 2 TiB');
  const indexSize = indexCount * SEGMENT_SIZE;
  if (indexOffset < HEADER_SIZE || indexOffset % SECTOR_SIZE !== 0 || indexOffset + indexSize > trailerAt) {
    throw corrupt('its index is outside of the file');
  }
  const bytes = await readAll(source, indexOffset, indexSize, signal);
  const index = await inSlices(parseSealedIndex(bytes, indexOffset / SECTOR_SIZE), signal);
  return { source, index, header };
}

function corrupt(problem: string): AenvError {
  return new AenvError('layer_corrupt', `this is no layer that can be read: ${problem}`);
}
