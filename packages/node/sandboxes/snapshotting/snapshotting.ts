import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { referenceTo, type SnapshotCatalog } from '../../snapshots/catalog/contract.ts';
import type { SnapshotName, SnapshotRecord } from '../../store/snapshot-record.ts';
import { captureInPassing } from '../checkpoints/capture-in-passing.ts';
import type { Checkpoints } from '../checkpoints/contract.ts';
import type { Ending } from '../ending.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../faults.ts';
import { newCheckpointId, randomName } from '../identity.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { SandboxObserver } from '../observe/contract.ts';
import { captureOf, diskBytes, machineOf } from '../pausing/pausing.ts';
import { type SnapshotLimits, SnapshotQuota } from './quota.ts';

export interface SnapshottingOptions {
  readonly checkpoints: Checkpoints;
  readonly ending: Ending;
  readonly observer: Pick<SandboxObserver, 'starting'>;
  readonly snapshots: Pick<SnapshotCatalog, 'requireFree' | 'add' | 'usage'>;
  readonly snapshotLimits: SnapshotLimits;
  readonly faults?: LifecycleFaults;
  /** the only one of this node */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** @throws AenvError why the state of the sandbox does not allow it */
  readonly requireRunning: (live: LiveSandbox) => void;
}

/** How a running sandbox is kept as a snapshot, which others can start from, also when it is long gone. */
export class Snapshotting {
  readonly #options: SnapshottingOptions;
  readonly #quota: SnapshotQuota;

  constructor(options: SnapshottingOptions) {
    this.#options = options;
    this.#quota = new SnapshotQuota(options.snapshotLimits, () => options.snapshots.usage());
  }

  /**
   * The source goes on as soon as its state is read. The snapshot has its name when all of it is durable, and not before:
   * one that fails leaves the name where it was.
   */
  async snapshot(source: LiveSandbox, name: SnapshotName | undefined): Promise<SnapshotRecord> {
    const { clock, snapshots } = this.#options;
    const begin = clock.now();
    if (name !== undefined) snapshots.requireFree(name);
    return await source.exclusive(() => this.#take(source, name, begin));
  }

  async #take(source: LiveSandbox, name: SnapshotName | undefined, begin: number): Promise<SnapshotRecord> {
    const { checkpoints, snapshots, namespace, requireRunning, clock, log } = this.#options;
    const { faults = noLifecycleFaults } = this.#options;
    requireRunning(source);
    const machine = machineOf(source);
    const disk = await diskBytes(machine);
    using _place = this.#quota.take((await machine.vm.privateBytes()) + disk);
    const { cpuCount, memoryMb, diskSizeMb, envdVersion, start, envVars, drives } = source.record;
    const fresh: SnapshotRecord = {
      templateId: randomName(20),
      checkpointId: newCheckpointId(),
      ...(name === undefined ? {} : { name }),
      sandboxId: source.id,
      createdAt: new Date(clock.now()),
      ...{ cpuCount, memoryMb, diskSizeMb, envdVersion, drives },
      start: { ...start, envVars: { ...start.envVars, ...envVars } },
    };
    const reference = referenceTo(fresh, namespace);
    const request = captureOf(source, machine, fresh.checkpointId, 'snapshot', 'go_on');
    const names = name === undefined ? [] : [reference];
    const { bytes, ms } = await captureInPassing(this.#options, source, { ...request, names });
    const snapshot = { ...fresh, bytes: bytes + disk };
    await faults.hit('snapshot.durable');
    try {
      snapshots.add(snapshot);
    } catch (error) {
      // Nobody was told of it, and nobody will ever ask for it.
      await checkpoints.remove(snapshot.checkpointId).catch(() => {});
      throw error;
    }
    await faults.hit('snapshot.row_written');
    const total = clock.now() - begin;
    log.info('snapshot taken', { sandboxId: source.id, snapshot: reference, bytes, ms: { ...ms, total } });
    return snapshot;
  }
}
