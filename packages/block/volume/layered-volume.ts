import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Durability, FrozenLayer, LayerStack, WritableLayer } from '../layers/contract.ts';
import type { Volume, WriteOp } from './contract.ts';
import { hullOf, overlaid, type Range } from './ranges.ts';
import { StackUse } from './stack-use.ts';

/** More pieces than this are zeroed as one, with what lies between them: an entry each would only make the index long. */
const MOST_PIECES = 16;

/** Bytes of the disk that are looked at in one go: whoever asks takes as much as he needs, and a guest may ask for 4 GiB. */
const RANGE_WINDOW = 16 * 2 ** 20;

export interface LayeredVolumeParts {
  readonly id: string;
  /** bytes, a multiple of 512; what lower layers have beyond it is not seen */
  readonly size: number;
  readonly durability: Durability;
  /** taken over */
  readonly stack: LayerStack;
  /** taken over; its disk is of this size */
  readonly upper: WritableLayer;
  /** frozen layers of the stack that are not sealed yet, bottom first; taken over */
  readonly frozen?: readonly FrozenLayer[];
}

/**
 * A disk of read-only layers and a writable one above them. Everything but a read that has to wait for a lower layer is
 * done at once; so is the exchange of the upper, which is what a snapshot takes of the disk.
 */
export class LayeredVolume implements Volume {
  readonly id: string;
  readonly size: number;
  readonly readOnly = false;
  readonly #durability: Durability;
  #stack: StackUse;
  #upper: WritableLayer;
  /** frozen layers that are not sealed yet, bottom first: a strict flush waits for them too */
  readonly #unsealed = new Map<string, FrozenLayer>();
  #closed = false;

  constructor(parts: LayeredVolumeParts) {
    this.id = parts.id;
    this.size = parts.size;
    this.#durability = parts.durability;
    this.#stack = new StackUse(parts.stack);
    this.#upper = parts.upper;
    for (const frozen of parts.frozen ?? []) this.#watch(frozen);
  }

  /** Bytes of the writable layer's data file, and those of them that are still read. */
  get usage(): { readonly total: number; readonly live: number } {
    return this.#upper.usage;
  }

  get upperUuid(): string {
    return this.#upper.uuid;
  }

  get upperFolder(): string {
    return this.#upper.folder;
  }

  read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void> | undefined {
    const end = offset + target.length;
    let waits: Promise<void>[] | undefined;
    let at = offset;
    const gap = (until: number) => {
      if (until <= at) return;
      const part = at === offset && until === end ? target : target.subarray(at - offset, until - offset);
      if (this.#stack.stack.readSync(part, at)) return;
      waits ??= [];
      waits.push(this.#stack.read(part, at, signal));
    };
    this.#upper.lookup(offset, target.length, (start, length, place, zeroed) => {
      gap(start);
      at = start + length;
      const part = length === target.length ? target : target.subarray(start - offset, at - offset);
      if (zeroed) part.fill(0);
      else this.#upper.readDataSync(part, place);
    });
    gap(end);
    return waits === undefined ? undefined : all(waits);
  }

  write(data: Uint8Array, offset: number): void {
    this.#mustBeOpen();
    this.#upper.write(data, offset);
  }

  writeMany(writes: readonly WriteOp[]): void {
    this.#mustBeOpen();
    const [first] = writes;
    if (writes.length === 1 && first !== undefined) this.#upper.write(first.data, first.offset);
    else this.#upper.writeMany(writes);
  }

  /** What reads as zeros already is left alone, so that trimming free space over and over costs nothing. */
  zero(offset: number, length: number): void {
    this.#mustBeOpen();
    const pieces: Range[] = [];
    for (const range of this.dataRanges(offset, length)) {
      pieces.push(range);
      if (pieces.length > MOST_PIECES) break;
    }
    if (pieces.length <= MOST_PIECES) for (const piece of pieces) this.#upper.zero(piece.offset, piece.length);
    else {
      const { offset: start } = hullOf(pieces);
      this.#upper.zero(start, offset + length - start);
    }
  }

  discard(offset: number, length: number): void {
    this.zero(offset, length);
  }

  /**
   * A layer that could not be sealed is tried again: as long as what was written before a swap is not on the disk, no
   * strict flush succeeds.
   */
  async flush(atLeast?: Durability): Promise<void> {
    const strict = this.#durability === 'strict' || atLeast === 'strict';
    await this.#upper.flush(strict ? 'strict' : 'relaxed');
    if (strict) await this.sealed();
  }

  /**
   * Waits until the layers that swaps have frozen are sealed: those that are now, or those up to one of them at least. What
   * failed before is tried again.
   * @throws AenvError `no_space`, `io_failed`
   */
  async sealed(last?: string): Promise<void> {
    const layers = [...this.#unsealed.values()];
    // One that is sealed already may stand on others that are not.
    const at = layers.findIndex(({ uuid }) => uuid === last);
    const due = at < 0 ? layers : layers.slice(0, at + 1);
    await Promise.all(due.map((layer) => this.#seal(layer)));
  }

  /** A layer of this volume that is not sealed yet. */
  unsealed(uuid: string): FrozenLayer | undefined {
    return this.#unsealed.get(uuid);
  }

  *dataRanges(offset: number, length: number): Generator<Range> {
    const end = offset + length;
    let last: { offset: number; length: number } | undefined;
    for (let at = offset; at < end; at += RANGE_WINDOW) {
      for (const range of this.#rangesOf({ offset: at, length: Math.min(RANGE_WINDOW, end - at) })) {
        if (last !== undefined && last.offset + last.length === range.offset) {
          last.length += range.length;
          continue;
        }
        if (last !== undefined) yield last;
        last = { ...range };
      }
    }
    if (last !== undefined) yield last;
  }

  #rangesOf(whole: Range): Iterable<Range> {
    const parts: (Range & { readonly zeroed: boolean })[] = [];
    this.#upper.lookup(whole.offset, whole.length, (start, count, _place, zeroed) =>
      parts.push({ offset: start, length: count, zeroed }),
    );
    return overlaid(whole, parts, (gap) => this.#stack.stack.dataRanges(gap.offset, gap.length));
  }

  /**
   * Exchanges the upper: what was written up to now is immutable, and whatever is written from now on goes to `next`,
   * which is taken over. Takes no longer for a large layer than for a small one.
   * @returns the layer as it was, in the caller's own use
   * @throws AenvError `internal` when the stack has as many layers as it may; then nothing has changed
   */
  swap(next: WritableLayer): FrozenLayer {
    this.#mustBeOpen();
    // Before anything is frozen that could not be read through a stack then.
    this.#stack.stack.mustTakeLayer();
    const frozen = this.#upper.freeze();
    const stack = this.#stack.stack.over(frozen);
    const before = this.#stack;
    this.#stack = new StackUse(stack);
    this.#upper = next;
    void before.close();
    this.#watch(frozen.retain());
    return frozen;
  }

  /** Puts another stack with the same contents in place of this one, as after a compaction. Takes it over. */
  replaceStack(stack: LayerStack): void {
    this.#mustBeOpen();
    const before = this.#stack;
    this.#stack = new StackUse(stack);
    void before.close();
  }

  /** Lets go of all files; what was written stays. Reads that are under way are waited for. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const unsealed = [...this.#unsealed.values()].map((frozen) => frozen.close());
    await Promise.all([this.#upper.close(), this.#stack.close(), ...unsealed]);
  }

  #watch(frozen: FrozenLayer): void {
    this.#unsealed.set(frozen.uuid, frozen);
    // Whoever waits for it is told; nobody has to wait.
    this.#seal(frozen).catch(() => {});
  }

  async #seal(frozen: FrozenLayer): Promise<void> {
    await frozen.seal();
    this.#unsealed.delete(frozen.uuid);
    await frozen.close();
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new AenvError('shutting_down', `volume ${this.id} is closed`);
  }
}

async function all(waits: readonly Promise<void>[]): Promise<void> {
  // Also after a failure none may go on writing into a buffer that is used for something else.
  await Promise.allSettled(waits);
  await Promise.all(waits);
}
