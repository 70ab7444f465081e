/**
 * Immutable blobs, named by what they hold: a key has one content for ever. Kept small enough that an object store serves
 * as well as a folder.
 */
export interface ChunkStore {
  /**
   * Durable when it resolves. Does nothing for a key that is there.
   * @throws AenvError `no_space`, `io_failed`
   */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** @returns undefined when there is no such blob; what a range has beyond its end is left out */
  get(key: string, range?: ByteRange): Promise<Buffer | undefined>;
  /** Whether a blob is there, and durable. */
  has(key: string): Promise<boolean>;
  list(): AsyncIterable<StoredChunk>;
  /** Idempotent. */
  delete(key: string): Promise<void>;
}

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

export interface StoredChunk {
  readonly key: string;
  readonly sizeBytes: number;
}
