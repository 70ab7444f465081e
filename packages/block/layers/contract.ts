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
  /** Releases this use of the layers' files. */
  close(): Promise<void>;
}

/**
 * `relaxed`: what was written survives the death of the VM and of the block daemon, not a power cut.
 * `strict`: it survives a power cut too.
 */
export type Durability = 'relaxed' | 'strict';

/** One write; offset and length of the data are multiples of 512. */
export interface WriteOp {
  readonly data: Uint8Array;
  /** bytes */
  readonly offset: number;
}

/** A layer that can be written, in the reference's append-only form: a data file and an index log. */
export interface WritableLayer {
  readonly virtualSize: number;
  /** Bytes that the layer's files occupy, and those of them that are still read. */
  readonly usage: { readonly total: number; readonly live: number };
  /**
   * Appends data; when it returns, the data survives the end of this process. Offset and length are multiples of 512.
   * @throws AenvError `no_space`
   */
  write(data: Uint8Array, offset: number): void;
  /** The same for several writes at once, in their order: one system call for the data, one for the index log. */
  writeAll(writes: readonly WriteOp[]): void;
  /** From now on the range reads as zeros, whatever lower layers have. */
  zero(offset: number, length: number): void;
  /**
   * Calls back for each part of the range that this layer knows, in order: data at a place of its data file, or zeros.
   * What is between the parts belongs to the layers below.
   */
  lookup(
    offset: number,
    length: number,
    part: (offset: number, length: number, dataOffset: number, zeroed: boolean) => void,
  ): void;
  /** Reads from the data file, at a place that `lookup` told. */
  readDataSync(target: Uint8Array, dataOffset: number): void;
  /** Concurrent calls share their syncs. */
  flush(durability: Durability): Promise<void>;
  /**
   * No write comes any more: from now on this is an immutable layer. Returns at once, whatever its size: `lookup` and
   * `readDataSync` go on working until `close`, and sealing the files (index and trailer appended, synced, renamed to
   * `overlaybd.sealed`) goes on in the background; `durable` resolves when it has all reached the disk.
   */
  freeze(): FrozenLayer;
  close(): Promise<void>;
}

export interface FrozenLayer {
  /** Folder that has (or will have) `overlaybd.sealed`. */
  readonly folder: string;
  readonly uuid: string;
  readonly durable: Promise<{ readonly path: string; readonly sizeBytes: number }>;
}
