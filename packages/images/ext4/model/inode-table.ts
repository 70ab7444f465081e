import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Geometry, INO, INODES_PER_BLOCK, INODES_PER_GROUP } from './geometry.ts';
import type { Node } from './node.ts';

/** All inodes by number. Numbers are given out in order; freed ones again only when there are no others. */
export class InodeTable {
  readonly #geometry: Geometry;
  readonly #nodes: (Node | undefined)[] = [];
  readonly #folders: number[];
  readonly #used: number[];
  #next: number;
  #freed: number[] = [];
  #dirtyGroups = new Set<number>();
  #dirtyBlocks = new Set<number>();
  #free: number;

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
    this.#folders = Array.from({ length: geometry.groupCount }, () => 0);
    this.#used = Array.from({ length: geometry.groupCount }, () => 0);
    // The reserved ones (1 to 10) count as used, whether anything is in them or not.
    this.#used[0] = INO.lostAndFound - 1;
    this.#next = INO.lostAndFound;
    this.#free = geometry.inodeCount - (INO.lostAndFound - 1);
    this.#dirtyGroups.add(0);
  }

  /** The first number that was never given out. */
  get next(): number {
    return this.#next;
  }

  get free(): number {
    return this.#free;
  }

  get(ino: number): Node | undefined {
    return this.#nodes[ino];
  }

  /**
   * A number for a new inode, which `put` must follow.
   * @throws AenvError `image_invalid` when there is none left
   */
  take(): number {
    if (this.#next <= this.#geometry.inodeCount) return this.#next++;
    // Descending, so that the lowest number comes first.
    if (this.#freed.length > 0) return this.#lowestFreed();
    throw new AenvError(
      'image_invalid',
      `the image has more files than fit on a disk of ${this.#geometry.sizeBytes} bytes (${this.#geometry.inodeCount})`,
      { remediation: 'Use a larger disk or a smaller image.' },
    );
  }

  put(node: Node): void {
    this.#nodes[node.ino] = node;
    this.#count(node, 1);
    this.touch(node.ino);
  }

  remove(node: Node): void {
    this.#nodes[node.ino] = undefined;
    this.#freed.push(node.ino);
    this.#count(node, -1);
    this.touch(node.ino);
  }

  /** The inode's block has to be written again. */
  touch(ino: number): void {
    this.#dirtyBlocks.add(Math.floor((ino - 1) / INODES_PER_BLOCK));
  }

  usedIn(group: number): number {
    return this.#used[group] ?? 0;
  }

  foldersIn(group: number): number {
    return this.#folders[group] ?? 0;
  }

  isUsed(ino: number): boolean {
    return ino < INO.lostAndFound || this.#nodes[ino] !== undefined;
  }

  /** Groups that changed since the last call, in order. */
  takeDirtyGroups(): number[] {
    const dirty = [...this.#dirtyGroups].sort((a, b) => a - b);
    this.#dirtyGroups = new Set();
    return dirty;
  }

  /** Blocks of the tables that changed since the last call, in order. */
  takeDirtyBlocks(): number[] {
    const dirty = [...this.#dirtyBlocks].sort((a, b) => a - b);
    this.#dirtyBlocks = new Set();
    return dirty;
  }

  *all(): Generator<Node> {
    for (const node of this.#nodes) if (node !== undefined) yield node;
  }

  /**
   * Takes over what a kept model has.
   * @param next as it was
   */
  restore(nodes: Iterable<Node>, next: number): void {
    for (const node of nodes) this.put(node);
    this.#next = next;
    for (let ino: number = INO.lostAndFound; ino < next; ino++)
      if (this.#nodes[ino] === undefined) this.#freed.push(ino);
    this.takeDirtyBlocks();
    this.takeDirtyGroups();
  }

  #lowestFreed(): number {
    this.#freed.sort((a, b) => b - a);
    return this.#freed.pop() ?? 0;
  }

  #count(node: Node, by: 1 | -1): void {
    const group = Math.floor((node.ino - 1) / INODES_PER_GROUP);
    this.#dirtyGroups.add(group);
    // Reserved numbers are counted from the start.
    if (node.ino >= INO.lostAndFound) {
      this.#used[group] = (this.#used[group] ?? 0) + by;
      this.#free -= by;
    }
    if (node.kind === 'folder') this.#folders[group] = (this.#folders[group] ?? 0) + by;
  }
}
