import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createNetwork } from '@aenv/network/network.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { run } from '@aenv/platform/process/run.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { Bench } from '../measurement.ts';
import { BareMachine, type BarePlace } from './bare-machine.ts';
import type { CapturedMachine } from './captured-machine.ts';
import { writeFlatDisk } from './flat-disk.ts';

/**
 * What bare restores of a captured machine need and is made ahead, as the daemon does it with slots: a network slot for
 * each, and its disk in one plain file that all have qcow2 overlays on.
 */
export class BareMachines implements AsyncDisposable {
  readonly places: readonly BarePlace[];
  readonly #bench: Bench;
  readonly machine: CapturedMachine;
  readonly #disk: string;
  readonly #taken: Rollback;

  private constructor(
    bench: Bench,
    machine: CapturedMachine,
    disk: string,
    places: readonly BarePlace[],
    taken: Rollback,
  ) {
    this.#bench = bench;
    this.machine = machine;
    this.#disk = disk;
    this.places = places;
    this.#taken = taken;
  }

  /** @param count machines that can run at a time */
  static async open(bench: Bench, machine: CapturedMachine, count: number): Promise<BareMachines> {
    const { signal } = bench;
    await installPackages(['qemu-utils'], { log: silentLogger, signal });
    await using taken = new Rollback();
    const folder = await mkdtemp(join(tmpdir(), 'aenvb-'));
    taken.add(() => rm(folder, { recursive: true, force: true }));
    await chmod(folder, 0o711);
    const disk = join(folder, 'disk.raw');
    await writeFlatDisk(disk, machine.layers, signal);
    const runtimeDir = join(folder, 'run');
    await mkdir(runtimeDir);
    const network = await createNetwork({
      ...{ runtimeDir, low: 0, high: 0, clock: systemClock, log: silentLogger, metrics: silentMetrics },
    });
    taken.add(() => network.close());
    const places: BarePlace[] = [];
    for (let number = 1; number <= count; number++) {
      const slot = await network.pool.acquire({ internet: true }, signal);
      const place = join(folder, `m${number}`);
      await mkdir(place);
      places.push({ slot, folder: place });
    }
    return new BareMachines(bench, machine, disk, places, taken.keep());
  }

  /** Makes a place ready for the next machine; not part of what is timed. */
  async clear({ folder }: BarePlace): Promise<void> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
    const overlay = join(folder, 'root.qcow2');
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-b', this.#disk, '-F', 'raw', overlay], {
      signal: this.#bench.signal,
    });
  }

  /** A machine in a place that was cleared, as soon as it has been told to go on. */
  start(place: BarePlace): Promise<BareMachine> {
    return BareMachine.start(this.#bench.host, this.machine, place, this.#bench.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#taken.run();
  }
}
