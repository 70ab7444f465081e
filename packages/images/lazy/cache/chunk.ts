import type { FileHandle } from 'node:fs/promises';
import { PART, PARTS_PER_CHUNK } from '../geometry.ts';
import { type ChunkParts, emptyParts } from './index-entry.ts';

/** A file with up to 64 parts of a blob, as it is known in memory. */
export class Chunk {
  readonly number: number;
  readonly path: string;
  parts: ChunkParts;
  /** 1 for a part that was written or checked since it is known that this very file is behind the path */
  readonly trusted = new Uint8Array(PARTS_PER_CHUNK);
  /** open as long as it is in use, and for a while longer */
  file: FileHandle | undefined;
  opening: Promise<FileHandle | undefined> | undefined;
  /** its file is being removed */
  evicting: Promise<void> | undefined;
  /** of the file that `trusted` is about */
  inode: number | undefined;
  /** reads and writes under way; as long as there are any, the file stays open and is not evicted */
  uses = 0;
  /** used since the last look at it */
  recent = false;
  /** has parts that the index on disk does not know */
  dirty = false;

  constructor(number: number, path: string, parts: ChunkParts = emptyParts()) {
    this.number = number;
    this.path = path;
    this.parts = parts;
  }

  /** Bytes that it is charged with. */
  get bytes(): number {
    return this.parts.present.reduce((sum, there) => sum + there, 0) * PART;
  }

  /** Nothing of it is there any more; what is known of its bytes stays. */
  forget(): void {
    this.parts.present.fill(0);
    this.trusted.fill(0);
  }
}
