import type { SegmentIndex } from '../lsmt/segment-index.ts';

/** Sectors of the LSMT format. */
export const SECTOR_SIZE = 512;

/** Read-only layers under a volume, merged to one index: what is in no layer reads as zeros. */
export interface LayerStack {
  /** bytes */
  readonly virtualSize: number;
  /**
   * Reads `target.length` bytes at `offset`, both multiples of 512.
   * @returns false if some of it has to be waited for: the contents of `target` are then undefined
   */
  readSync(target: Uint8Array, offset: number): boolean;
  read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void>;
  /** Ranges of `[offset, offset + length)` that some layer has data for, in order; the rest reads as zeros. */
  dataRanges(offset: number, length: number): Iterable<{ readonly offset: number; readonly length: number }>;
  /** @throws AenvError `internal` when it has as many layers as a stack may have, or is closed */
  mustTakeLayer(): void;
  /**
   * This stack with a layer on top, at once. It uses the layers for itself: this stack and the frozen layer's own use are
   * closed by whoever has them. The indexes are merged in the background.
   */
  over(frozen: FrozenLayer): LayerStack;
  /** Releases this use of the layers' files. */
  close(): Promise<void>;
}

/**
 * `relaxed`: what was written survives the death of the VM and of the block daemon, not a power cut.
 * `strict`: it survives a power cut too.
 */
export type Durability = 'relaxed' | 'strict';

/** One part of what a layer knows about a range: data at a place of its data file, or zeros. All bytes. */
export type LayerPart = (offset: number, length: number, dataOffset: number, zeroed: boolean) => void;

/** What both a layer that is written and one that no longer is can tell. */
export interface UpperReader {
  /** bytes */
  readonly virtualSize: number;
  readonly uuid: string;
  /** Folder of the layer's files. */
  readonly folder: string;
  /**
   * Calls back for each part of the range that this layer knows, in order. What is between the parts belongs to the layers
   * below.
   */
  lookup(offset: number, length: number, part: LayerPart): void;
  /** Reads from the data file, at a place that `lookup` told. */
  readDataSync(target: Uint8Array, dataOffset: number): void;
}

/** A layer that can be written, in the reference's append-only form: a data file and an index log. */
export interface WritableLayer extends UpperReader {
  /** Bytes that the layer's data file occupies, and those of them that are still read. */
  readonly usage: { readonly total: number; readonly live: number };
  /**
   * Appends data; when it returns, the data survives the end of this process. Offset and length are multiples of 512.
   * @throws AenvError `no_space`
   */
  write(data: Uint8Array, offset: number): void;
  /** The same for several writes at once, later ones over earlier ones: one call of the host for all of them. */
  writeMany(writes: readonly { readonly data: Uint8Array; readonly offset: number }[]): void;
  /** From now on the range reads as zeros, whatever lower layers have. */
  zero(offset: number, length: number): void;
  /**
   * Concurrent calls share their syncs.
   * @throws AenvError `io_failed` if the host could not sync: from then on every strict flush and every write fails, since
   *   nobody knows what of the earlier ones is on the disk
   */
  flush(durability: Durability): Promise<void>;
  /**
   * No write comes any more: from now on this is an immutable layer, at once readable through a stack. Sealing the files
   * (index and trailer appended, synced, renamed to `overlaybd.sealed`) goes on in the background; `durable` resolves
   * when it has all reached the disk. This object is done for: do not close it, close the frozen layer.
   */
  freeze(): FrozenLayer;
  /** Lets go of the files, which stay as they are and can be opened again. */
  close(): Promise<void>;
}

/** A sealed layer; `path` is that of `overlaybd.sealed` in its folder. */
export interface SealedFile {
  readonly path: string;
  readonly sizeBytes: number;
}

/** A layer that was writable. It is readable before, while and after it is sealed. */
export interface FrozenLayer extends UpperReader {
  /** What came of the first try to seal it. */
  readonly durable: Promise<SealedFile>;
  /** What the layer has, sorted: done long before the layer is durable. */
  readonly index: Promise<SegmentIndex>;
  /**
   * Resolves when it is sealed and on the disk. A try that has failed, as on a full disk, is made again.
   * @throws AenvError `no_space`; `io_failed`, also by every later try when what was written could not be synced
   */
  seal(): Promise<SealedFile>;
  /** One more use of the file, closed by itself. */
  retain(): FrozenLayer;
  /** Releases this use of the file; stacks over the layer have uses of their own. Sealing goes on. */
  close(): Promise<void>;
}
