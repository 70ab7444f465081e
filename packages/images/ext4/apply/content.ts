import { appendExtent } from '../format/extent-tree.ts';
import { BLOCK_SIZE } from '../model/geometry.ts';
import type { FileNode } from '../model/node.ts';
import type { Tree } from '../model/tree.ts';
import type { BlockSink } from '../sink.ts';

/** Bytes of a file that stand at a place in it. */
export interface Piece {
  readonly offset: number;
  readonly data: Uint8Array;
}

const ZEROS = Buffer.alloc(BLOCK_SIZE);
/** Most blocks that are taken at once. */
const MAX_RUN = 1024;

/**
 * Writes the content of one empty file. Blocks of zeros, and what no piece covers, become holes.
 * @param pieces in order, without overlaps, all inside `[0, size)`
 * @param size bytes
 */
export async function writeContent(
  tree: Tree,
  sink: BlockSink,
  file: FileNode,
  pieces: AsyncIterable<Piece> | Iterable<Piece>,
  size: number,
): Promise<void> {
  const writer = new ContentWriter(tree, sink, file);
  for await (const piece of pieces) {
    const wait = writer.add(piece);
    if (wait !== undefined) await wait;
  }
  await writer.end();
  file.size = size;
  tree.touch(file);
}

class ContentWriter {
  readonly #tree: Tree;
  readonly #sink: BlockSink;
  readonly #file: FileNode;
  /** a block that is not complete yet */
  readonly #partial = Buffer.alloc(BLOCK_SIZE);
  #partialBlock = -1;

  constructor(tree: Tree, sink: BlockSink, file: FileNode) {
    this.#tree = tree;
    this.#sink = sink;
    this.#file = file;
  }

  async add({ offset, data }: Piece): Promise<void> {
    let at = 0;
    while (at < data.length) {
      const position = offset + at;
      const block = Math.floor(position / BLOCK_SIZE);
      const inBlock = position % BLOCK_SIZE;
      if (inBlock === 0 && data.length - at >= BLOCK_SIZE) {
        await this.#flush();
        const whole = Math.floor((data.length - at) / BLOCK_SIZE);
        await this.#blocks(block, data.subarray(at, at + whole * BLOCK_SIZE));
        at += whole * BLOCK_SIZE;
        continue;
      }
      if (block !== this.#partialBlock) {
        await this.#flush();
        this.#partialBlock = block;
      }
      const part = data.subarray(at, at + BLOCK_SIZE - inBlock);
      this.#partial.set(part, inBlock);
      at += part.length;
      if (inBlock + part.length === BLOCK_SIZE) await this.#flush();
    }
  }

  end(): Promise<void> {
    return this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#partialBlock === -1) return;
    await this.#blocks(this.#partialBlock, this.#partial);
    this.#partial.fill(0);
    this.#partialBlock = -1;
  }

  /** Whole blocks, of which those that are all zeros are left out. */
  async #blocks(first: number, data: Uint8Array): Promise<void> {
    const count = data.length / BLOCK_SIZE;
    for (let from = 0; from < count; ) {
      if (isZero(data, from)) {
        from++;
        continue;
      }
      let to = from + 1;
      while (to < count && to - from < MAX_RUN && !isZero(data, to)) to++;
      const run = this.#tree.blocks.take(to - from);
      appendExtent(this.#file.extents, { logical: first + from, physical: run.start, count: run.count });
      await this.#sink.write(run.start, data.subarray(from * BLOCK_SIZE, (from + run.count) * BLOCK_SIZE));
      from += run.count;
    }
  }
}

function isZero(data: Uint8Array, block: number): boolean {
  const at = block * BLOCK_SIZE;
  // The usual block is told apart by its first bytes.
  if (data[at] !== 0) return false;
  return ZEROS.compare(data, at, at + BLOCK_SIZE) === 0;
}
