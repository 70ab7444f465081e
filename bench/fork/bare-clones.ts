import { availableParallelism } from 'node:os';
import { inParallel } from '@aenv/node/snapshots/repository/in-parallel.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { BareMachine, BarePlace } from '../bare/bare-machine.ts';
import type { BareMachines } from '../bare/bare-machines.ts';
import { bringUpToDate, runDirectly } from '../bare/guest-calls.ts';
import type { Bench } from '../measurement.ts';
import { pssOf } from '../memory/pss.ts';

export interface BareClones {
  /** from the first start until the last one has been told all that a child is told, `ms` */
  readonly ms: number;
  /** MiB of each one's QEMU */
  readonly pss: readonly number[];
}

/** Starts a bare clone in each place, as many at a time as there are processors, has all run a command, and ends them. */
export async function cloneBare(bench: Bench, bare: BareMachines): Promise<BareClones> {
  await using ends = new Rollback();
  const atOnce = availableParallelism();
  await inParallel(bare.places, atOnce, (place) => bare.clear(place));
  const machines: BareMachine[] = [];
  const begin = performance.now();
  await inParallel(bare.places, atOnce, async (place) => {
    bench.signal.throwIfAborted();
    const machine = await startTold(bench, bare, place);
    ends.add(() => machine[Symbol.asyncDispose]());
    machines.push(machine);
  });
  const ms = performance.now() - begin;
  await inParallel(machines, atOnce, async ({ address }) => {
    await runDirectly(address, '/bin/sh', ['-c', 'hostname; cat /proc/sys/kernel/random/boot_id']);
  });
  return { ms, pss: await Promise.all(machines.map(({ process }) => pssOf(process.pid))) };
}

/** One clone alone. @returns the same time, `ms` */
export async function restoreBare(bench: Bench, bare: BareMachines): Promise<number> {
  const [place] = bare.places;
  if (place === undefined) throw new Error('there is no place for a bare machine');
  await bare.clear(place);
  const begin = performance.now();
  await using _machine = await startTold(bench, bare, place);
  return performance.now() - begin;
}

async function startTold(bench: Bench, bare: BareMachines, place: BarePlace): Promise<BareMachine> {
  const machine = await bare.start(place);
  try {
    await bringUpToDate(machine.address, bare.machine.hostSecret, bench.signal);
    return machine;
  } catch (error) {
    await machine[Symbol.asyncDispose]();
    throw error;
  }
}
