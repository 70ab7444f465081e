/** Where blocks of a file system go: a layer, or a disk as a whole. */
export interface BlockSink {
  /**
   * Writes blocks in a row. The last write of a block counts.
   * @param block number of the first one
   * @param data a multiple of BLOCK_SIZE; it may be used again when this returns, or when its promise resolves
   * @returns undefined when nothing has to be waited for
   */
  write(block: number, data: Uint8Array): Promise<void> | undefined;
}

/** Reads blocks as all layers below and up to the last one show them. */
export interface BlockReader {
  /** @param offset in bytes; reads `target.length` of them */
  read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void>;
}
