import { BLOCK_SIZE } from '../model/geometry.ts';
import type { BlockEdits } from './block-edits.ts';
import { invalid } from './geometry.ts';
import type { Groups } from './groups.ts';
import type { InodeRecord } from './inode-record.ts';
import { readMapping, writeMapping } from './mapping.ts';

/** Account files and the like are small; anything larger is none. */
const MAX_TEXT = 1024 * 1024;

/** Contents of small files of a file system that somebody else has made. */
export class FileContents {
  readonly #edits: BlockEdits;
  readonly #groups: Groups;

  constructor(edits: BlockEdits, groups: Groups) {
    this.#edits = edits;
    this.#groups = groups;
  }

  /** Puts a content in place of the one that was there. The record is not written yet. */
  async write(inode: InodeRecord, content: Buffer): Promise<void> {
    const { extents, treeBlocks } = await readMapping(this.#edits, inode, MAX_TEXT / BLOCK_SIZE);
    for (const { physical, count } of extents) await this.#groups.giveBlocks(physical, count);
    for (const block of treeBlocks) await this.#groups.giveBlocks(block, 1);
    const before = extents.reduce((sum, { count }) => sum + count, treeBlocks.length);
    const count = Math.ceil(content.length / BLOCK_SIZE);
    const first = count === 0 ? 0 : await this.#groups.takeBlocks(count);
    for (let at = 0; at < count; at++) {
      const block = Buffer.alloc(BLOCK_SIZE);
      content.copy(block, 0, at * BLOCK_SIZE);
      this.#edits.replace(first + at, block);
    }
    writeMapping(inode, count === 0 ? [] : [{ logical: 0, physical: first, count }]);
    inode.size = content.length;
    inode.ownedBlocks += count - before;
  }

  /** @throws AenvError `image_invalid` when it is larger than 1 MiB */
  async read(inode: InodeRecord): Promise<Buffer> {
    if (inode.size > MAX_TEXT) throw invalid('an account file of it is larger than 1 MiB');
    const content = Buffer.alloc(Math.ceil(inode.size / BLOCK_SIZE) * BLOCK_SIZE);
    const { extents } = await readMapping(this.#edits, inode, MAX_TEXT / BLOCK_SIZE);
    for (const { logical, physical, count, isWritten } of extents) {
      for (let at = 0; isWritten && at < count && (logical + at) * BLOCK_SIZE < content.length; at++) {
        (await this.#edits.read(physical + at)).copy(content, (logical + at) * BLOCK_SIZE);
      }
    }
    return content.subarray(0, inode.size);
  }
}
