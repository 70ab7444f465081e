import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { INDEX_ALIGNMENT, NULL_UUID } from '@aenv/block/lsmt/format.ts';
import { encodeHeader } from '@aenv/block/lsmt/header.ts';
import { serialiseIndex } from '@aenv/block/lsmt/sealed-index.ts';
import { SectorMap } from '@aenv/block/lsmt/sector-map.ts';
import { inSlices } from '@aenv/block/lsmt/slices.ts';
import { BLOCK_SIZE } from '../ext4/model/geometry.ts';
import type { BlockSink } from '../ext4/sink.ts';

export interface LayerIdentity {
  readonly uuid: string;
  /** undefined for the lowest layer */
  readonly parentUuid: string | undefined;
  /** bytes of the disk */
  readonly virtualSize: number;
}

const SECTOR = 512;
const SECTORS_PER_BLOCK = BLOCK_SIZE / SECTOR;
const CHUNK = 1024 * 1024;

/**
 * Writes a layer in the committed form of overlaybd: header, data, index, trailer. Data stands in the order in which it
 * came, so that the file is one stream from its first byte to its last, hashed on the way; of a block that was written
 * twice the index names the last place.
 */
export class LayerFile implements BlockSink, AsyncDisposable {
  readonly #file: FileHandle;
  readonly #identity: LayerIdentity;
  readonly #map: SectorMap;
  readonly #hash = createHash('sha256');
  #chunk = Buffer.allocUnsafe(CHUNK);
  #spare = Buffer.allocUnsafe(CHUNK);
  #filled = 0;
  /** bytes that were taken, written or not */
  #end = 0;
  #written = 0;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(file: FileHandle, identity: LayerIdentity) {
    this.#file = file;
    this.#identity = identity;
    this.#map = new SectorMap(identity.virtualSize / SECTOR);
  }

  /** @param path of a file that does not exist */
  static async create(path: string, identity: LayerIdentity): Promise<LayerFile> {
    const layer = new LayerFile(await open(path, 'wx', 0o644), identity);
    await layer.#append(encodeHeader({ ...layer.#fields(), isSealed: true }));
    return layer;
  }

  write(block: number, data: Uint8Array): Promise<void> | undefined {
    this.#map.setData(block * SECTORS_PER_BLOCK, data.length / SECTOR, this.#end / SECTOR);
    return this.#append(data);
  }

  /**
   * Completes the file and brings it to stable storage.
   * @returns what a descriptor of the layer says
   */
  async finish(signal?: AbortSignal): Promise<{ readonly digest: string; readonly sizeBytes: number }> {
    const indexOffset = this.#end;
    const index = await inSlices(this.#map.toIndex(indexOffset / SECTOR), signal);
    const bytes = await inSlices(serialiseIndex(index, INDEX_ALIGNMENT), signal);
    await this.#append(bytes);
    const indexCount = Math.ceil(index.count / INDEX_ALIGNMENT) * INDEX_ALIGNMENT;
    await this.#append(encodeHeader({ ...this.#fields(), isHeader: false, isSealed: true, indexOffset, indexCount }));
    await this.#flush();
    await this.#writing;
    await this.#file.sync();
    // Volumes stack on it: from here on nothing may change it.
    await this.#file.chmod(0o444);
    return { digest: `sha256:${this.#hash.digest('hex')}`, sizeBytes: this.#end };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#file.close();
  }

  #fields() {
    const { uuid, parentUuid, virtualSize } = this.#identity;
    return { uuid, parentUuid: parentUuid ?? NULL_UUID, virtualSize };
  }

  #append(data: Uint8Array): Promise<void> | undefined {
    this.#end += data.length;
    if (this.#filled + data.length <= CHUNK) {
      this.#chunk.set(data, this.#filled);
      this.#filled += data.length;
      return undefined;
    }
    return this.#appendLong(data);
  }

  async #appendLong(data: Uint8Array): Promise<void> {
    for (let done = 0; done < data.length; ) {
      const part = data.subarray(done, done + CHUNK - this.#filled);
      this.#chunk.set(part, this.#filled);
      this.#filled += part.length;
      done += part.length;
      if (this.#filled === CHUNK) await this.#flush();
    }
  }

  /** Hands the chunk over to be written while the next one is filled. */
  async #flush(): Promise<void> {
    await this.#writing;
    const full = this.#chunk.subarray(0, this.#filled);
    [this.#chunk, this.#spare] = [this.#spare, this.#chunk];
    this.#filled = 0;
    const position = this.#written;
    this.#written += full.length;
    this.#writing = this.#writeAll(full, position);
    // Told when it is next waited for.
    this.#writing.catch(() => {});
    this.#hash.update(full);
  }

  async #writeAll(data: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < data.length; ) {
      const { bytesWritten } = await this.#file.write(data, done, data.length - done, position + done);
      done += bytesWritten;
    }
  }
}
