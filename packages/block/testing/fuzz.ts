import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** A random number in [0, 1). */
export type Random = () => number;

/** Numbers that follow from the seed (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b_79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Values at which lengths and offsets go wrong. */
const EDGES = [0n, 1n, 7n, 255n, 512n, 4096n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 50n - 1n, 2n ** 53n, 2n ** 64n - 1n];

/** A damaged copy: some bytes, some numbers, a piece moved, a piece cut off or put on. */
export function damaged(bytes: Buffer, random: Random): Buffer {
  let copy = Buffer.from(bytes);
  const at = (room = 0) => Math.floor(random() * Math.max(1, copy.length - room));
  for (let changes = 1 + Math.floor(random() * 4); changes > 0 && copy.length > 16; changes--) {
    const kind = random();
    if (kind < 0.35) copy[at()] = Math.floor(random() * 256);
    else if (kind < 0.45) copy[at()] = (copy[at()] ?? 0) ^ (1 << Math.floor(random() * 8));
    else if (kind < 0.7) {
      const edge = EDGES[Math.floor(random() * EDGES.length)] ?? 0n;
      const place = at(8) & ~3;
      if (random() < 0.5) copy.writeBigUInt64LE(edge, place);
      else copy.writeUInt32LE(Number(edge & 0xffff_ffffn), place);
    } else if (kind < 0.85) copy.copy(copy, at(), at(), at() + 64);
    else if (kind < 0.95) copy = copy.subarray(0, at());
    else copy = Buffer.concat([copy, Buffer.alloc(Math.floor(random() * 5000), Math.floor(random() * 256))]);
  }
  return copy;
}

export interface FuzzOptions {
  /** inputs that are tried, of the seeds from 1 on; in soak it is a minute, of seeds that nobody has tried before */
  readonly times: number;
  /** seeds that have found something once: they are tried first, every time */
  readonly kept?: readonly number[];
  /** bytes of memory that no input may take, and all of them together may hold, beyond what there was */
  readonly memory: number;
  /** tries the input of a seed; what it throws is a finding */
  readonly attempt: (seed: number) => Promise<void>;
}

const SOAK_MS = 60_000;
/**
 * Inputs between two looks at the memory, each of which collects all garbage. The last look sees what any input has left
 * behind, so that those in between only matter where millions are tried.
 */
const LOOK_EVERY = 1000;

/** Garbage included. What the process has of the kernel says less: the allocator gives nothing back in the suites. */
function takenBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function heldBytes(): number {
  // Contexts that are made after the flag have the collector.
  setFlagsFromString('--expose-gc');
  // What one frees beside the heap is counted as free by the next one.
  runInNewContext('gc(); gc()');
  return takenBytes();
}

/** An input that never ends is known by the seed that is left in this file. */
const TRAIL = join(tmpdir(), `aenv-fuzz-${process.pid}`);

/** Tries inputs that follow from seeds. @throws Error that names the seed of the input that has found something */
export async function fuzz({ times, kept = [], memory, attempt }: FuzzOptions): Promise<void> {
  const soak = process.env.AENV_SOAK === '1';
  const end = Date.now() + SOAK_MS;
  const first = soak ? Date.now() : 1;
  const before = heldBytes();
  const isDue = (done: number) => (soak ? Date.now() < end : done < times);
  const look = async (seed: number) => {
    // What an object of the heap holds outside of it goes in a turn of the event loop, which awaiting alone never is.
    await nextTurn();
    const held = heldBytes() - before;
    if (held > memory) throw new Error(`${held} bytes of memory are held after the input of seed ${seed}`);
  };
  const trail = soak ? openSync(TRAIL, 'w') : undefined;
  const tryOne = async (seed: number) => {
    if (trail !== undefined) writeSync(trail, `${seed}\n`, 0);
    const start = takenBytes();
    try {
      await attempt(seed);
      const taken = takenBytes() - start;
      if (taken > memory) throw new Error(`it took ${taken} bytes of memory`);
    } catch (error) {
      throw new Error(`the input of seed ${seed}, which belongs into the list of kept ones`, { cause: error });
    }
  };
  for (const seed of kept) await tryOne(seed);
  let seed = first;
  for (; isDue(seed - first); seed++) {
    await tryOne(seed);
    if (seed % LOOK_EVERY === 0) await look(seed);
  }
  await look(seed);
  if (trail === undefined) return;
  console.log(`# ${seed - first} inputs`);
  closeSync(trail);
  rmSync(TRAIL);
}
