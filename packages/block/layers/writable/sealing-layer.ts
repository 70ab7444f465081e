import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { encodeHeader } from '../../lsmt/header.ts';
import { serialiseIndex } from '../../lsmt/sealed-index.ts';
import type { SectorMap } from '../../lsmt/sector-map.ts';
import type { SegmentIndex } from '../../lsmt/segment-index.ts';
import { inSlices } from '../../lsmt/slices.ts';
import { type FrozenLayer, type LayerPart, SECTOR_SIZE, type SealedFile } from '../contract.ts';
import type { LayerFiles, RandomFile } from '../files/contract.ts';
import { layerPaths } from './paths.ts';

/** What a layer that is no longer written hands over. */
export interface SealingParts {
  readonly folder: string;
  readonly uuid: string;
  readonly parentUuid: string;
  readonly userTag: string;
  readonly virtualSize: number;
  readonly files: LayerFiles;
  readonly data: RandomFile;
  readonly map: SectorMap;
  /** a layer of more could not be opened again */
  readonly maxSegments: number;
  /** bytes */
  readonly dataEnd: number;
  /** Brings data and index log to the disk. */
  readonly synced: () => Promise<void>;
  /** Closes and removes the logs, which the sealed file makes needless. */
  readonly removeLogs: () => Promise<void>;
  /** Closes them and leaves them where they are, when nobody is left who could seal the layer. */
  readonly closeLogs: () => Promise<void>;
}

/** Bytes of one write of the index, so that the thread pool is not held for long. */
const CHUNK = 4 * 2 ** 20;

/**
 * A frozen layer: readable from the map at once, from the sorted index as soon as that is made. Sealing appends index and
 * trailer to the data file, in the reference's form; the file gets its new name when all of it is on the disk, so that a
 * crash in between leaves a writable layer which can be frozen again. Until it is sealed the logs are kept open, so that a
 * sealing that has failed can be tried again.
 */
export class SealingLayer implements FrozenLayer {
  readonly folder: string;
  readonly uuid: string;
  readonly virtualSize: number;
  readonly durable: Promise<SealedFile>;
  readonly index: Promise<SegmentIndex>;
  readonly #parts: SealingParts;
  #map: SectorMap | undefined;
  #sorted: SegmentIndex | undefined;
  /** that of the creator, and one while it is being sealed */
  #uses = 1;
  #creatorHolds = true;
  #sealing: Promise<SealedFile> | undefined;
  #isRenamed = false;
  /** when its new name is on the disk */
  #sealed: SealedFile | undefined;

  constructor(parts: SealingParts) {
    this.#parts = parts;
    this.folder = parts.folder;
    this.uuid = parts.uuid;
    this.virtualSize = parts.virtualSize;
    this.#map = parts.map;
    this.index = this.#sort(parts.map);
    this.durable = this.seal();
    // Whoever wants to know waits for the promise; nobody has to.
    this.index.catch(() => {});
    this.durable.catch(() => {});
  }

  lookup(offset: number, length: number, part: LayerPart): void {
    const stretch = (sector: number, count: number, place: number, zeroed: boolean) =>
      part(sector * SECTOR_SIZE, count * SECTOR_SIZE, place * SECTOR_SIZE, zeroed);
    if (this.#map !== undefined) this.#map.forEach(offset / SECTOR_SIZE, length / SECTOR_SIZE, stretch);
    else this.#sorted?.forEach(offset / SECTOR_SIZE, length / SECTOR_SIZE, stretch);
  }

  readDataSync(target: Uint8Array, dataOffset: number): void {
    this.#parts.data.readSync(target, dataOffset);
  }

  seal(): Promise<SealedFile> {
    this.#sealing ??= this.#try();
    return this.#sealing;
  }

  retain(): FrozenLayer {
    if (this.#uses === 0) throw new AenvError('internal', `the layer in ${this.folder} is closed`);
    this.#uses++;
    return new FrozenUse(this, () => this.#release());
  }

  async close(): Promise<void> {
    if (!this.#creatorHolds) return;
    this.#creatorHolds = false;
    await this.#release();
  }

  async #sort(map: SectorMap): Promise<SegmentIndex> {
    const sorted = await inSlices(map.toIndex(this.#parts.dataEnd / SECTOR_SIZE));
    this.#sorted = sorted;
    this.#map = undefined;
    return sorted;
  }

  async #try(): Promise<SealedFile> {
    if (this.#uses === 0) throw new AenvError('internal', `the layer in ${this.folder} is closed`);
    this.#uses++;
    try {
      return await this.#seal();
    } catch (error) {
      this.#sealing = undefined;
      throw error;
    } finally {
      await this.#release();
    }
  }

  async #seal(): Promise<SealedFile> {
    const { files, data, dataEnd, folder, uuid, parentUuid, virtualSize, userTag } = this.#parts;
    const index = await this.index;
    // All that was missing is that the logs are removed; nobody reads them any more.
    if (this.#sealed !== undefined) return this.#sealed;
    if (index.count > this.#parts.maxSegments) {
      throw new AenvError('layer_too_scattered', `the layer in ${folder} has ${index.count} segments`);
    }
    // The new name may be seen before it is on the disk. If the power goes then, the files are those of a writable layer
    // again, and they must have all that somebody has seen under the new name and built upon.
    await this.#parts.synced();
    const bytes = await inSlices(serialiseIndex(index));
    const padding = Buffer.alloc((SECTOR_SIZE - (bytes.length % SECTOR_SIZE)) % SECTOR_SIZE);
    const trailer = encodeHeader({
      isHeader: false,
      isSealed: true,
      indexOffset: dataEnd,
      indexCount: index.count,
      virtualSize,
      uuid,
      parentUuid,
      userTag,
    });
    let end = dataEnd;
    for (let done = 0; done < bytes.length; done += CHUNK) {
      const chunk = bytes.subarray(done, done + CHUNK);
      await data.write(chunk, end);
      end += chunk.length;
    }
    await data.write(Buffer.concat([padding, trailer]), end);
    end += padding.length + trailer.length;
    // A write that had failed may have left something behind the end.
    data.truncateSync(end);
    await data.sync();
    const paths = layerPaths(folder);
    if (!this.#isRenamed) await files.rename(paths.data, paths.sealed);
    this.#isRenamed = true;
    await files.syncFolder(folder);
    this.#sealed = { path: paths.sealed, sizeBytes: end };
    await this.#parts.removeLogs();
    return this.#sealed;
  }

  async #release(): Promise<void> {
    if (--this.#uses > 0) return;
    await this.#parts.data.close();
    if (this.#sealed === undefined) await this.#parts.closeLogs();
  }
}

/** One use of a frozen layer. */
class FrozenUse implements FrozenLayer {
  readonly folder: string;
  readonly uuid: string;
  readonly virtualSize: number;
  readonly durable: FrozenLayer['durable'];
  readonly index: FrozenLayer['index'];
  readonly #layer: FrozenLayer;
  #release: (() => Promise<void>) | undefined;

  constructor(layer: FrozenLayer, release: () => Promise<void>) {
    this.folder = layer.folder;
    this.uuid = layer.uuid;
    this.virtualSize = layer.virtualSize;
    this.durable = layer.durable;
    this.index = layer.index;
    this.#layer = layer;
    this.#release = release;
  }

  seal(): Promise<SealedFile> {
    return this.#layer.seal();
  }

  lookup(offset: number, length: number, part: LayerPart): void {
    this.#layer.lookup(offset, length, part);
  }

  readDataSync(target: Uint8Array, dataOffset: number): void {
    this.#layer.readDataSync(target, dataOffset);
  }

  retain(): FrozenLayer {
    return this.#layer.retain();
  }

  async close(): Promise<void> {
    const release = this.#release;
    this.#release = undefined;
    await release?.();
  }
}
