import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { WrittenBlob } from '../../blob/sink.ts';
import { HEADER_SIZE, INDEX_ALIGNMENT, MAX_LOCAL_ENTRIES, MAX_SECTORS, NULL_UUID } from '../../lsmt/format.ts';
import { encodeHeader } from '../../lsmt/header.ts';
import { serialiseIndex } from '../../lsmt/sealed-index.ts';
import { MAX_DATA_SECTORS, SectorMap } from '../../lsmt/sector-map.ts';
import { inSlices } from '../../lsmt/slices.ts';
import { SECTOR_SIZE } from '../contract.ts';
import { createLayerFile, type LayerFile, type LayerForm } from './layer-file.ts';

export interface NewLayerFile {
  readonly path: string;
  readonly form?: LayerForm;
  readonly uuid: string;
  readonly parentUuid?: string;
  /** bytes of the disk; 0 = that of the layer below */
  readonly virtualSize: number;
  /** Size of the disk that the data belongs to, where `virtualSize` is 0. */
  readonly diskSize?: number;
  readonly userTag?: string;
  /** More segments than this, padding included, are refused. */
  readonly maxSegments?: number;
}

export interface WrittenLayer extends WrittenBlob {
  /** bytes of data in the layer */
  readonly dataBytes: number;
  /** entries of the index, without padding */
  readonly segments: number;
}

/**
 * Writes a committed layer: data in the order in which it is appended (ascending offsets make one large stream of later
 * reads), then the index. The file gets its name when it is complete and on the disk.
 */
export class LayerWriter {
  readonly #file: LayerFile;
  readonly #options: NewLayerFile;
  readonly #map: SectorMap;
  /** bytes of the blob */
  #end = HEADER_SIZE;

  private constructor(file: LayerFile, options: NewLayerFile, map: SectorMap) {
    this.#file = file;
    this.#options = options;
    this.#map = map;
  }

  /** @throws AenvError `no_space`, `io_failed` */
  static async create(options: NewLayerFile): Promise<LayerWriter> {
    const { uuid, parentUuid = NULL_UUID, virtualSize, userTag = '' } = options;
    const sectors = (options.diskSize ?? virtualSize) / SECTOR_SIZE;
    if (!Number.isInteger(sectors) || sectors > MAX_SECTORS) throw new RangeError('a disk of this size cannot be');
    const header = encodeHeader({ isSealed: true, uuid, parentUuid, virtualSize, userTag });
    const file = await createLayerFile(options.path, options.form);
    try {
      await file.sink.append(header);
    } catch (error) {
      await file.abort();
      throw error;
    }
    return new LayerWriter(file, options, new SectorMap(sectors));
  }

  /** Appends data for a place of the disk; offset and length are multiples of 512. Later data hides earlier data. */
  async append(data: Uint8Array, offset: number): Promise<void> {
    this.#check(offset, data.length);
    await this.#file.sink.append(data);
    this.#map.setData(offset / SECTOR_SIZE, data.length / SECTOR_SIZE, this.#end / SECTOR_SIZE);
    this.#end += data.length;
  }

  /** The range reads as zeros, whatever lower layers have. */
  zero(offset: number, length: number): void {
    this.#check(offset, length);
    this.#map.setZero(offset / SECTOR_SIZE, length / SECTOR_SIZE);
  }

  /** @throws AenvError `no_space`, `io_failed`, `layer_too_scattered`: then `abort` is still to be called */
  async finish(): Promise<WrittenLayer> {
    const { uuid, parentUuid = NULL_UUID, virtualSize, userTag = '' } = this.#options;
    const index = await inSlices(this.#map.toIndex(this.#end / SECTOR_SIZE));
    const entries = Math.ceil(index.count / INDEX_ALIGNMENT) * INDEX_ALIGNMENT;
    if (entries > (this.#options.maxSegments ?? MAX_LOCAL_ENTRIES)) {
      throw new AenvError('layer_too_scattered', `a layer of ${index.count} segments, for ${this.#options.path}`);
    }
    const bytes = await inSlices(serialiseIndex(index, INDEX_ALIGNMENT));
    await this.#file.sink.append(bytes);
    const trailer = encodeHeader({
      isHeader: false,
      isSealed: true,
      indexOffset: this.#end,
      indexCount: entries,
      virtualSize,
      uuid,
      parentUuid,
      userTag,
    });
    await this.#file.sink.append(trailer);
    const written = await this.#file.finish();
    return { ...written, dataBytes: this.#end - HEADER_SIZE, segments: index.count };
  }

  /** Removes what was written. */
  async abort(): Promise<void> {
    await this.#file.abort();
  }

  #check(offset: number, length: number): void {
    const size = this.#options.diskSize ?? this.#options.virtualSize;
    if (offset % SECTOR_SIZE !== 0 || length % SECTOR_SIZE !== 0 || offset < 0 || offset + length > size) {
      throw new RangeError(`bytes ${offset}..${offset + length} of a disk of ${size}, in sectors of 512`);
    }
    if (this.#end + length > MAX_DATA_SECTORS * SECTOR_SIZE)
      throw new AenvError('no_space', 'a layer holds at most 1 TiB');
  }
}
