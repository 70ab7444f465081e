import { availableParallelism } from 'node:os';
import { inParallel } from '@aenv/node/snapshots/repository/in-parallel.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { BareMachines } from '../bare/bare-machines.ts';
import { letGo, runDirectly } from '../bare/guest-calls.ts';
import type { Bench } from '../measurement.ts';
import { pssOf } from '../memory/pss.ts';

/** Starts a bare clone in each place, has all of them run a command, and ends them. @returns MiB of each one's QEMU */
export async function cloneBare(bench: Bench, bare: BareMachines): Promise<number[]> {
  await using machines = new Rollback();
  const pids: number[] = [];
  await inParallel(bare.places, availableParallelism(), async (place) => {
    bench.signal.throwIfAborted();
    await bare.clear(place);
    const machine = await bare.start(place);
    machines.add(() => machine[Symbol.asyncDispose]());
    await letGo(machine.address, bare.machine.hostSecret, bench.signal);
    await runDirectly(machine.address, '/bin/sh', ['-c', 'hostname; cat /proc/sys/kernel/random/boot_id']);
    pids.push(machine.process.pid);
  });
  return await Promise.all(pids.map(pssOf));
}
