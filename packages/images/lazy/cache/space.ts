import { statfs } from 'node:fs/promises';
import { CHUNK } from '../geometry.ts';
import type { Chunk } from './chunk.ts';

/** From this share of the space on chunks are evicted … */
const HIGH = 0.95;
/** … down to this one. */
const LOW = 0.9;
/** The file system is looked at again after so many bytes. */
const LOOK_EVERY = 4 * CHUNK;

export interface SpaceOptions {
  readonly root: string;
  readonly capacityBytes: number;
  /** what the file system keeps free */
  readonly keepFreeBytes: number;
  /** of the file system; for tests */
  readonly freeBytes?: (root: string) => Promise<number>;
}

/** A chunk that takes space, and what to keep it for. */
export interface Tenant {
  readonly chunk: Chunk;
  /** to be evicted only when there is nothing else: of a complete blob */
  isKept(): boolean;
  /** Takes it off the disk. */
  evict(): Promise<void>;
}

/**
 * Which chunks stay: a clock (second chance) over all chunks of all blobs. Space is charged by the parts that are there.
 */
export class Space {
  readonly #options: SpaceOptions;
  readonly #ring: Tenant[] = [];
  readonly #members = new Set<Chunk>();
  #hand = 0;
  #used = 0;
  #sinceLook = LOOK_EVERY;
  #diskFull = false;
  #evicting: Promise<void> | undefined;

  constructor(options: SpaceOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return this.#used;
  }

  /**
   * Takes room for something that is about to be kept; `release` gives it back.
   * @returns false when there is none: what is refused is served without being kept
   */
  reserve(bytes: number): boolean {
    // What is refused counts too, so that a full disk is looked at again.
    this.#sinceLook += bytes;
    if (this.#diskFull || this.#used + bytes > this.#options.capacityBytes) {
      this.tidy();
      return false;
    }
    this.#used += bytes;
    return true;
  }

  /** What an earlier process has left takes room, be there some or not. */
  inherit(tenant: Tenant): void {
    this.#used += tenant.chunk.bytes;
    this.moveIn(tenant);
  }

  /** A chunk has something that room was taken for. */
  moveIn(tenant: Tenant): void {
    if (!this.#members.has(tenant.chunk)) {
      this.#members.add(tenant.chunk);
      this.#ring.push(tenant);
    }
    if (this.#used > this.#options.capacityBytes * HIGH || this.#sinceLook >= LOOK_EVERY) this.tidy();
  }

  release(bytes: number): void {
    this.#used -= bytes;
  }

  /** A chunk is taken away as a whole. */
  leave(chunk: Chunk): void {
    this.#used -= chunk.bytes;
    this.#members.delete(chunk);
    const at = this.#ring.findIndex((tenant) => tenant.chunk === chunk);
    if (at !== -1) this.#ring.splice(at, 1);
  }

  /** Looks at the disk and evicts in the background, when there is something to do. */
  tidy(): void {
    this.#evicting ??= this.#tidy()
      // The disk cannot be read or written: nothing more is kept until it can.
      .catch(() => {
        this.#diskFull = true;
      })
      .finally(() => {
        this.#evicting = undefined;
      });
  }

  /** The disk has refused a write. */
  isFull(): void {
    this.#diskFull = true;
    this.#sinceLook = LOOK_EVERY;
    this.tidy();
  }

  /** Resolves when no eviction is under way. */
  async settled(): Promise<void> {
    await this.#evicting;
  }

  async #tidy(): Promise<void> {
    const { root, capacityBytes, keepFreeBytes, freeBytes = freeOf } = this.#options;
    if (this.#used > capacityBytes * HIGH) await this.#evict(this.#used - capacityBytes * LOW);
    if (this.#sinceLook < LOOK_EVERY) return;
    this.#sinceLook = 0;
    const missing = keepFreeBytes - (await freeBytes(root));
    if (missing > 0) await this.#evict(missing);
    this.#diskFull = missing > 0 && (await freeBytes(root)) < keepFreeBytes;
  }

  async #evict(bytes: number): Promise<void> {
    const goal = this.#used - bytes;
    for (const everything of [false, true]) {
      // Twice around: the first time those used lately get their second chance.
      for (let steps = 2 * this.#ring.length; steps > 0 && this.#used > goal; steps--) {
        await this.#step(everything);
      }
    }
  }

  async #step(everything: boolean): Promise<void> {
    if (this.#hand >= this.#ring.length) this.#hand = 0;
    const tenant = this.#ring[this.#hand];
    if (tenant === undefined) return;
    const { chunk } = tenant;
    if (chunk.uses > 0 || (tenant.isKept() && !everything) || chunk.recent) {
      chunk.recent = false;
      this.#hand++;
      return;
    }
    this.#members.delete(chunk);
    const last = this.#ring.pop();
    if (last !== undefined && last !== tenant) this.#ring[this.#hand] = last;
    this.#used -= chunk.bytes;
    await tenant.evict();
  }
}

async function freeOf(root: string): Promise<number> {
  const { bavail, bsize } = await statfs(root);
  return bavail * bsize;
}
