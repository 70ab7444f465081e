/**
 * Immutable bytes of known length: a file, a slice of another blob, an unpacked ZFile, or a registry's blob behind a
 * cache. Offsets and lengths are bytes; a range that is not inside `[0, size)` is a programming error and throws
 * `RangeError`.
 */
export interface BlobSource {
  readonly size: number;
  /**
   * Reads `target.length` bytes at `offset` if that needs neither the network nor a wait.
   * @returns false if not all of the bytes are at hand: what is in `target` is then undefined, and the caller takes `read`
   * @throws AenvError `layer_corrupt` if a checksum or a length does not hold
   */
  readSync(target: Uint8Array, offset: number): boolean;
  /** @throws AenvError `layer_corrupt`, `layer_unavailable` (the network stays away for longer than allowed) */
  read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void>;
  /**
   * Told by whoever finds out that what a range gave is damaged: it is not given again from what is kept of it, but
   * fetched anew. Absent where nothing is kept.
   */
  distrust?(offset: number, length: number): Promise<void>;
  close(): Promise<void>;
}
