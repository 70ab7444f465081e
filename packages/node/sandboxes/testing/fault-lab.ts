import { mkdir, readdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlockStore } from '@aenv/block/contract.ts';
import { FakeSlotPool } from '@aenv/network/fake/slot-pool.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { createFakeDriver, type FakeDriver } from '@aenv/vmm/fake/driver.ts';
import { unguarded } from '../../assets/testing/unguarded.ts';
import { Catalog } from '../../snapshots/catalog/catalog.ts';
import { hasCheckpoint, NodeCheckpoints } from '../../snapshots/checkpoints.ts';
import type { SnapshotRepository } from '../../snapshots/contract.ts';
import { DiskSpace } from '../../snapshots/disk-space.ts';
import { openSnapshotRepository } from '../../snapshots/repository/repository.ts';
import { sweepSnapshots } from '../../snapshots/sweep.ts';
import { type Ledger, openLedger } from '../../store/ledger.ts';
import type { Template } from '../../templates/contract.ts';
import { diskLayers, localLayers } from '../../templates/layers.ts';
import { createMachineBuilder } from '../../templates/machine/build.ts';
import { Machines } from '../../templates/machine/machines.ts';
import { envdOverTcp } from '../envd-client/envd-client.ts';
import { LIFECYCLE_POINTS, type LifecycleFaults, type LifecyclePoint } from '../faults.ts';
import { createBootVm, createRestoreVm } from '../launch/boot-vm.ts';
import { createLaunch } from '../launch/launch.ts';
import { SerialLogs } from '../launch/serial-logs.ts';
import { recover } from '../recovery/recover.ts';
import { Sandboxes } from '../service.ts';
import type { ShutdownPolicy } from '../shutdown/shutdown.ts';
import type { Standing, WarmKey } from '../warm/contract.ts';
import { prepareStanding } from '../warm/prepare.ts';
import { CREATE, SILENT_OBSERVER, TEMPLATE } from './fixture.ts';

const MEMORY_MB = 8;
const DISK_MB = 16;

export interface FaultLabOptions {
  /** folder of this node alone */
  readonly root: string;
  readonly volumes: BlockStore;
  /** a sealed layer that all disks stand on */
  readonly layer: string;
  readonly faults: LifecycleFaults;
}

/**
 * A node with a real ledger, real snapshots and a real block daemon, whose VMs are fakes in this process. Its operations
 * pass every point of the lifecycle.
 */
export class FaultLab {
  readonly driver: FakeDriver;
  readonly ledger: Ledger;
  readonly repository: SnapshotRepository;
  readonly #checkpoints: NodeCheckpoints;
  readonly #machines: Machines;
  readonly #template: Template;
  readonly #options: FaultLabOptions;
  readonly #newSandboxes: (action: ShutdownPolicy['action']) => Sandboxes;
  readonly #prepare: (key: WarmKey) => Promise<Standing | undefined>;
  #sandboxes: Sandboxes;
  /** the one machine that stands ready, for sandboxes of the template that it was prepared for */
  #standing: { readonly checkpoint: string; machine: Standing | undefined } | undefined;

  private constructor(options: FaultLabOptions, ledger: Ledger, repository: SnapshotRepository) {
    const { root, volumes, faults } = options;
    this.#options = options;
    this.ledger = ledger;
    this.repository = repository;
    this.driver = createFakeDriver({ zeros: zerosOf(root) });
    const common = { faults, clock: systemClock, log: silentLogger };
    const boot = { kernel: artefact(root, 'kernel'), toolsDrive: artefact(root, 'tools') };
    const cpu = { model: 'none', flags: [] };
    const host = { kind: this.driver.kind, build: this.driver.build, cpu };
    // Fakes have no programs that could stand still.
    const guests = {
      ...{
        prepare: async () => {},
        freeze: async () => {},
        unfreeze: async () => {},
        rehearse: async () => {},
        sync: async () => {},
      },
    };
    this.#checkpoints = new NodeCheckpoints({
      ...{ repository, volumes, faults, host, guests, sealOf: async () => undefined, log: silentLogger },
      space: new DiskSpace({ folder: root, keepFreeBytes: 0 }),
    });
    const serialLogs = new SerialLogs(join(root, 'serial'));
    const places = { driver: this.driver, vmDir: join(root, 'vm'), serialLogs };
    const restoring = {
      // Other test files, and the process that was killed a moment ago, have their addresses, too.
      slots: new FakeSlotPool({ network: 100 + (process.pid % 100) }),
      ...{ volumes, faults, checkpoints: this.#checkpoints, connectEnvd: envdOverTcp(systemClock) },
      restoreVm: createRestoreVm(places),
    };
    const prepare = { ...restoring, useGuest: async () => {} };
    this.#prepare = (key) => prepareStanding(prepare, key, new AbortController().signal);
    const launch = createLaunch({
      ...{ ...restoring, startService: async () => {} },
      warm: {
        answerMs: 5_000,
        take: ({ checkpoint }) => this.#takeStanding(checkpoint),
        discard: ({ resources }) => resources.run(),
      },
      bootVm: createBootVm({ ...places, attempts: 1, timeoutMs: 5_000, log: silentLogger }),
      restoreLimits: { guestMs: 5_000, hooksMs: 1_000 },
      vmParts: { kernel: '/k', initramfs: '/i', kernelArgs: 'quiet', toolsDrive: '/t' },
      boot,
    });
    this.#template = { ...TEMPLATE, memoryMb: MEMORY_MB, diskSizeMb: DISK_MB };
    this.#template = { ...this.#template, source: { ...TEMPLATE.source, layers: localLayers([options.layer]) } };
    this.#machines = new Machines({
      ...{ ...common, repository, uses: unguarded, platform: 'lab', signal: new AbortController().signal },
      folder: join(root, 'machines'),
      build: createMachineBuilder({
        ...{ ...common, launch, volumes, guests, useGuest: async () => {} },
        facts: { ...boot, cpu, vmm: { kind: host.kind, build: host.build } },
      }),
    });
    const snapshots = new Catalog({
      ...{ ledger, repository, checkpoints: this.#checkpoints, log: silentLogger, namespace: 'default' },
    });
    this.#newSandboxes = (action) =>
      new Sandboxes({
        ...{ snapshots, namespace: 'default' },
        ...{ ...common, ledger: ledger.sandboxes, launch, serialLogs, checkpoints: this.#checkpoints },
        templates: { resolve: () => this.#template, recordSpawn: () => {} },
        startPointOf: async ({ source }) =>
          this.#standing === undefined
            ? { kind: 'disk', disk: { kind: 'layers', layers: diskLayers(source) } }
            : { kind: 'checkpoint', id: this.#standing.checkpoint, event: 'create' },
        limits: { maxSandboxes: 100, memoryShare: 0, maxConcurrentStarts: 2, maxQueuedStarts: 64 },
        keepEnded: { days: 7, count: 1000 },
        ...{ paused: {}, snapshotLimits: {}, shutdown: { action, timeoutMs: 10_000 }, observer: SILENT_OBSERVER },
        readAvailableMemory: () => 1_000_000,
        metrics: silentMetrics,
      });
    this.#sandboxes = this.#newSandboxes('kill');
  }

  /** Others after a shutdown. */
  get sandboxes(): Sandboxes {
    return this.#sandboxes;
  }

  /** A node as it starts: what an earlier one of the same folder has left is found and removed. */
  static async open(options: FaultLabOptions): Promise<FaultLab> {
    const { root, volumes } = options;
    for (const name of ['home', 'vm', 'serial', 'machines']) await mkdir(join(root, name), { recursive: true });
    for (const name of ['kernel', 'tools']) await writeFile(join(root, name), name);
    await writeFile(zerosOf(root), '');
    await truncate(zerosOf(root), MEMORY_MB * 2 ** 20);
    const ledger = openLedger(join(root, 'home'));
    const repository = await openSnapshotRepository({
      root: join(root, 'snapshots'),
      verifyDisk: async () => ({ checkedBytes: 0, problems: [] }),
      ...{ clock: systemClock, log: silentLogger },
    });
    const report = await recover({
      ...{ ledger: ledger.sandboxes, volumes, keepVms: false, clock: systemClock, log: silentLogger },
      hasCheckpoint: (checkpoint, drives) => hasCheckpoint(repository, volumes, checkpoint, drives),
      ...{ runtimeDir: root, vmDir: join(root, 'vm'), vmFileDirs: [{ path: join(root, 'serial') }] },
      removeNetwork: async () => 0,
    });
    if (report.failures.length > 0) throw new Error(report.failures.join('; '));
    const lab = new FaultLab(options, ledger, repository);
    const checkpoints = ledger.sandboxes.live().flatMap(({ checkpoint }) => checkpoint?.id ?? []);
    const templates = ([...LIFECYCLE_POINTS, 'warm'] as const).map((point) =>
      lab.#machines.idOf(lab.#templateFor(point)),
    );
    const needed = new Set([...checkpoints, ...ledger.snapshots.checkpointIds(), ...templates]);
    await sweepSnapshots({ repository, volumes, needed, memoryBases: [], log: silentLogger });
    lab.sandboxes.takeUpPaused();
    return lab;
  }

  /** What a point is passed in. @param done told what was acknowledged, at once */
  async run(point: LifecyclePoint, done: (what: string) => void): Promise<void> {
    const operation = point.split('.')[0];
    if (operation === 'template') {
      const id = await this.#machines.of(this.#templateFor(point));
      if (id !== undefined) done(`template ${id}`);
      return;
    }
    if (operation === 'warm') return await this.#runWarm(done);
    if (operation === 'comeback') return await this.#runComeback(done);
    const { sandboxId } = await this.sandboxes.create({ ...CREATE, timeoutSeconds: 600 });
    done(`running ${sandboxId}`);
    if (operation === 'pause' || operation === 'pause_disk' || operation === 'resume') {
      await this.sandboxes.pause(sandboxId, { memory: operation !== 'pause_disk' });
      done(`paused ${sandboxId}`);
    }
    if (operation === 'resume') {
      await this.sandboxes.connect(sandboxId, 600);
      done(`running ${sandboxId}`);
    }
    if (operation === 'snapshot') {
      const { checkpointId } = await this.sandboxes.snapshot(sandboxId);
      done(`snapshot ${checkpointId}`);
    }
    if (operation === 'fork') {
      const forks = await this.sandboxes.fork(sandboxId, { count: 2, timeoutSeconds: 600 });
      for (const fork of forks) if ('view' in fork) done(`running ${fork.view.sandboxId}`);
    }
  }

  /** A machine is made ready, and becomes a sandbox. */
  async #runWarm(done: (what: string) => void): Promise<void> {
    const checkpoint = await this.#machines.of(this.#templateFor('warm'));
    if (checkpoint === undefined) throw new Error('the template could not be captured');
    const { cpuCount, memoryMb, diskSizeMb } = this.#template;
    const machine = await this.#prepare({ checkpoint, quiet: false, cpuCount, memoryMb, diskSizeMb });
    this.#standing = { checkpoint, machine };
    try {
      const { sandboxId } = await this.sandboxes.create({ ...CREATE, timeoutSeconds: 600 });
      done(`running ${sandboxId}`);
    } finally {
      await this.#takeStanding(checkpoint)?.resources.run();
      this.#standing = undefined;
    }
  }

  /** A sandbox is paused by a shutdown, and resumed by the start after it. */
  async #runComeback(done: (what: string) => void): Promise<void> {
    await this.#restart('pause');
    const { sandboxId } = await this.sandboxes.create({ ...CREATE, timeoutSeconds: 600 });
    done(`running ${sandboxId}`);
    await this.#restart('kill');
    done(`paused ${sandboxId}`);
    this.sandboxes.takeUpPaused();
    this.sandboxes.bringBack();
    const live = this.sandboxes.routes.get(sandboxId);
    await live?.exclusive(async () => {});
    if (live?.lifecycle.state === 'running') done(`running ${sandboxId}`);
  }

  /** @param next what its shutdown is to do */
  async #restart(next: ShutdownPolicy['action']): Promise<void> {
    await this.#sandboxes.close();
    this.#sandboxes = this.#newSandboxes(next);
  }

  #takeStanding(checkpoint: string): Standing | undefined {
    if (this.#standing?.checkpoint !== checkpoint) return undefined;
    const { machine } = this.#standing;
    this.#standing.machine = undefined;
    return machine;
  }

  /** A template of which no machine was captured before. */
  #templateFor(point: LifecyclePoint | 'warm'): Template {
    return { ...this.#template, start: { ...this.#template.start, envVars: { POINT: point } } };
  }

  /** All that is held beyond what is acknowledged for good, when no sandbox is left; the empty list when nothing is. */
  async leftovers(): Promise<string[]> {
    const { root, volumes } = this.#options;
    const kept = new Set(this.ledger.snapshots.checkpointIds());
    const snapshots = (await this.repository.list()).filter(({ id, kind }) => kind !== 'template' && !kept.has(id));
    const names = async (folder: string) => await readdir(join(root, folder)).catch(() => []);
    return [
      ...this.ledger.sandboxes.live().map(({ sandboxId, state }) => `row ${sandboxId} ${state}`),
      ...[...this.driver.host.vms.keys()].map((incarnation) => `vm ${incarnation}`),
      ...(await volumes.list()).map((id) => `disk ${id}`),
      ...(await volumes.listSnapshots()).filter((id) => !kept.has(id)).map((id) => `disk of a snapshot ${id}`),
      ...snapshots.map(({ id, kind }) => `snapshot ${id} (${kind})`),
      ...(await this.repository.damaged()).map(({ id }) => `damaged snapshot ${id}`),
      ...(await names('vm')).map((name) => `run folder ${name}`),
      ...(await names('snapshots/drafts')).map((name) => `draft ${name}`),
      ...(await names('machines')).filter((name) => name.startsWith('.work')).map((name) => `work ${name}`),
    ];
  }

  async close(): Promise<void> {
    await this.#machines.close();
    await this.sandboxes.close();
    await this.driver.host.close();
    await this.repository.close();
    this.ledger.close();
  }
}

const zerosOf = (root: string): string => join(root, 'zeros.mem');

function artefact(root: string, name: string) {
  return { digest: name, path: join(root, name) };
}
