import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from '../../blob/contract.ts';
import { MAX_LAYERS } from '../../lsmt/format.ts';
import { overlay } from '../../lsmt/overlay.ts';
import { inSlices } from '../../lsmt/slices.ts';
import { type FrozenLayer, type LayerStack, SECTOR_SIZE } from '../contract.ts';
import { FlatStack, type Run } from './flat-stack.ts';

/** Something that a stack holds open until it is closed. */
export interface Hold {
  /** One more hold of the same. */
  retain(): Hold;
  close(): Promise<void>;
}

/** Reads that one request has under way at the same time. */
const PARALLEL = 16;
/** Bytes of the disk whose data ranges are found in one go. */
const RANGE_WINDOW = 64 * 2 ** 20;

/**
 * A stack of layers: those that are merged to one index, and above them, for a moment after each snapshot, frozen layers
 * whose own maps are asked first. When a frozen layer has its sorted index, it is merged into the flat part.
 */
export class Stack implements LayerStack {
  readonly virtualSize: number;
  #flat: FlatStack;
  /** top first */
  #frozen: readonly FrozenLayer[];
  readonly #holds: readonly Hold[];
  #closed = false;

  /** Takes over the holds. */
  constructor(virtualSize: number, flat: FlatStack, frozen: readonly FrozenLayer[], holds: readonly Hold[]) {
    this.virtualSize = virtualSize;
    this.#flat = flat;
    this.#frozen = frozen;
    this.#holds = holds;
    if (frozen.length > 0) this.#mergeFrozen().catch(() => {});
  }

  readSync(target: Uint8Array, offset: number): boolean {
    if (this.#frozen.length === 0) return this.#flat.readSync(target, offset);
    return this.#readLevelSync(0, target, offset);
  }

  async read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void> {
    if (target.length === 0) return;
    const runs: { source: BlobSource; target: Uint8Array; offset: number }[] = [];
    this.#plan(0, target, offset, (source, part, at) => {
      if (!source.readSync(part, at)) runs.push({ source, target: part, offset: at });
    });
    let next = 0;
    let failure: { readonly error: unknown } | undefined;
    const worker = async () => {
      try {
        while (failure === undefined) {
          const run = runs[next++];
          if (run === undefined) return;
          await run.source.read(run.target, run.offset, signal);
        }
      } catch (error) {
        failure ??= { error };
      }
    };
    // All have ended when this ends, also after a failure: the caller may use the buffer for something else.
    await Promise.all(Array.from({ length: Math.min(PARALLEL, runs.length) }, worker));
    if (failure !== undefined) throw failure.error;
  }

  *dataRanges(offset: number, length: number): Generator<{ offset: number; length: number }> {
    const end = offset + length;
    let last: { offset: number; length: number } | undefined;
    for (let at = offset; at < end; at += RANGE_WINDOW) {
      const found: { offset: number; length: number }[] = [];
      this.#known(0, at, Math.min(RANGE_WINDOW, end - at), (o, l, zeroed) => {
        if (!zeroed) found.push({ offset: o, length: l });
      });
      for (const range of found) {
        if (last !== undefined && last.offset + last.length === range.offset) last.length += range.length;
        else {
          if (last !== undefined) yield last;
          last = range;
        }
      }
    }
    if (last !== undefined) yield last;
  }

  mustTakeLayer(): void {
    if (this.#closed) throw new AenvError('internal', 'the stack is closed');
    if (this.#flat.sources.length + this.#frozen.length >= MAX_LAYERS) {
      throw new AenvError('internal', `a stack has at most ${MAX_LAYERS} layers`);
    }
  }

  over(frozen: FrozenLayer): LayerStack {
    this.mustTakeLayer();
    const holds = this.#holds.map((hold) => hold.retain());
    const own = frozen.retain();
    return new Stack(own.virtualSize || this.virtualSize, this.#flat, [own, ...this.#frozen], [...holds, own]);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all(this.#holds.map((hold) => hold.close()));
  }

  #readLevelSync(level: number, target: Uint8Array, offset: number): boolean {
    const frozen = this.#frozen[level];
    if (frozen === undefined) return this.#flat.readSync(target, offset);
    let at = offset;
    let done = true;
    const gap = (end: number) => {
      if (end > at) done = done && this.#readLevelSync(level + 1, target.subarray(at - offset, end - offset), at);
    };
    frozen.lookup(offset, target.length, (start, length, place, zeroed) => {
      gap(start);
      at = start + length;
      const part = target.subarray(start - offset, at - offset);
      if (zeroed) part.fill(0);
      else frozen.readDataSync(part, place);
    });
    gap(offset + target.length);
    return done;
  }

  /** Reads frozen layers, fills zeros, and reports what the flat part has to read. */
  #plan(level: number, target: Uint8Array, offset: number, run: Run): void {
    const frozen = this.#frozen[level];
    if (frozen === undefined) {
      this.#flat.plan(target, offset, run);
      return;
    }
    let at = offset;
    const gap = (end: number) => {
      if (end > at) this.#plan(level + 1, target.subarray(at - offset, end - offset), at, run);
    };
    frozen.lookup(offset, target.length, (start, length, place, zeroed) => {
      gap(start);
      at = start + length;
      const part = target.subarray(start - offset, at - offset);
      if (zeroed) part.fill(0);
      else frozen.readDataSync(part, place);
    });
    gap(offset + target.length);
  }

  #known(level: number, offset: number, length: number, part: (o: number, l: number, zeroed: boolean) => void): void {
    const frozen = this.#frozen[level];
    if (frozen === undefined) {
      this.#flat.index.forEach(offset / SECTOR_SIZE, length / SECTOR_SIZE, (sector, count, _place, zeroed) =>
        part(sector * SECTOR_SIZE, count * SECTOR_SIZE, zeroed),
      );
      return;
    }
    let at = offset;
    frozen.lookup(offset, length, (start, partLength, _place, zeroed) => {
      if (start > at) this.#known(level + 1, at, start - at, part);
      at = start + partLength;
      part(start, partLength, zeroed);
    });
    if (offset + length > at) this.#known(level + 1, at, offset + length - at, part);
  }

  /** Lowest first, so that each merge ends in the flat part. */
  async #mergeFrozen(): Promise<void> {
    while (!this.#closed) {
      const lowest = this.#frozen.at(-1);
      if (lowest === undefined) return;
      const index = await lowest.index;
      const level = this.#flat.sources.length;
      const merged = await inSlices(overlay(index, this.#flat.index, level));
      this.#flat = new FlatStack(merged, [...this.#flat.sources, frozenSource(lowest)]);
      this.#frozen = this.#frozen.slice(0, -1);
    }
  }
}

/** The data file of a frozen layer as a blob; its holder keeps it open. */
function frozenSource(layer: FrozenLayer): BlobSource {
  return {
    size: Number.MAX_SAFE_INTEGER,
    readSync(target, offset) {
      layer.readDataSync(target, offset);
      return true;
    },
    async read(target, offset) {
      layer.readDataSync(target, offset);
    },
    async close() {},
  };
}
