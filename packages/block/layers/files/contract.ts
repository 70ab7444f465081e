/** An open file, read and written at given places. Whatever is short or fails throws. */
export interface RandomFile {
  size(): number;
  /** Fills all of `target`. */
  readSync(target: Uint8Array, position: number): void;
  /** Writes the parts one after the other. */
  writeSync(parts: readonly Uint8Array[], position: number): void;
  write(data: Uint8Array, position: number): Promise<void>;
  truncateSync(size: number): void;
  /** Data, and what of the file's description is needed to read it again, is on the disk (fdatasync(2)). */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The operations on files that the safety of a layer depends on: a seam, so that tests can cut the power. */
export interface LayerFiles {
  /** Makes a folder, and those above it, unless they are there. */
  makeFolder(path: string): Promise<void>;
  /** Makes a file that must not exist. Mode 0600. */
  create(path: string): Promise<RandomFile>;
  /** Opens for reading and writing. @returns undefined if there is no such file */
  open(path: string): Promise<RandomFile | undefined>;
  rename(from: string, to: string): Promise<void>;
  /** For files in memory only, where it takes no time. */
  renameSync(from: string, to: string): void;
  /** Removing what does not exist is no error. */
  remove(path: string): Promise<void>;
  /** Makes creations, renames and removals in a folder durable. */
  syncFolder(path: string): Promise<void>;
}
