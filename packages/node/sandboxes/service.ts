import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import type { MicroVm } from '@aenv/vmm/contract/micro-vm.ts';
import type { SnapshotCatalog } from '../snapshots/catalog/contract.ts';
import type { SandboxLedger } from '../store/sandbox-ledger.ts';
import { type SandboxRecord, toView } from '../store/sandbox-record.ts';
import type { SnapshotName, SnapshotRecord } from '../store/snapshot-record.ts';
import type { Template, TemplateService } from '../templates/contract.ts';
import { type AdmissionLimits, admit } from './admission.ts';
import type { Adopted } from './adoption/adopt.ts';
import type { Checkpoints } from './checkpoints/contract.ts';
import type {
  CreateSandbox,
  Fork,
  ForkOptions,
  ListPage,
  ListQuery,
  PauseOptions,
  ResumeOptions,
  SandboxService,
  SandboxView,
} from './contract.ts';
import { Creating } from './creating/creating.ts';
import { Ending } from './ending.ts';
import { sandboxNotFound, sandboxNotPaused, sandboxNotRunning, sandboxPaused } from './errors.ts';
import { Expiry } from './expiry/expiry.ts';
import { wakeSeconds } from './expiry/wake-seconds.ts';
import type { LifecycleFaults } from './faults.ts';
import { Forking } from './forking/forking.ts';
import type { Launch, StartPoint } from './launch/launch.ts';
import type { SerialLogs } from './launch/serial-logs.ts';
import { type EndRequest, isFinal } from './lifecycle/state.ts';
import type { ReadAvailableMemory } from './limits/memory.ts';
import { LiveSandbox } from './live/live-sandbox.ts';
import { LiveSandboxes, wakesForTraffic } from './live/live-sandboxes.ts';
import { howVmEnded, type VmEnd } from './live/vm-end.ts';
import { SandboxMetrics } from './metrics.ts';
import { newRecord, type SandboxShape } from './new-record.ts';
import type { SandboxObserver } from './observe/contract.ts';
import { booting, continuing } from './origin/after-pause.ts';
import { resolveOrigin, shapeOf } from './origin/origin.ts';
import { Pausing } from './pausing/pausing.ts';
import type { PausedLimits } from './pausing/quota.ts';
import { bringBack, comesBack } from './shutdown/comeback.ts';
import type { ShutdownReport } from './shutdown/report.ts';
import { Shutdown, type ShutdownPolicy } from './shutdown/shutdown.ts';
import type { SnapshotLimits } from './snapshotting/quota.ts';
import { Snapshotting } from './snapshotting/snapshotting.ts';
import { Starting } from './starting/starting.ts';

export interface SandboxLimits extends AdmissionLimits {
  readonly maxConcurrentStarts: number;
  readonly maxQueuedStarts: number;
}

export interface LifecycleOptions {
  readonly ledger: SandboxLedger;
  readonly templates: Pick<TemplateService, 'resolve' | 'recordSpawn'>;
  readonly snapshots: SnapshotCatalog;
  /** the only one of this node */
  readonly namespace: string;
  readonly launch: Launch;
  /** what a sandbox of a template starts from */
  readonly startPointOf: (template: Template) => Promise<StartPoint>;
  readonly checkpoints: Checkpoints;
  readonly limits: SandboxLimits;
  readonly keepEnded: { readonly days: number; readonly count: number };
  readonly paused: PausedLimits;
  readonly snapshotLimits: SnapshotLimits;
  readonly shutdown: ShutdownPolicy;
  readonly faults?: LifecycleFaults;
  readonly serialLogs: SerialLogs;
  readonly readAvailableMemory: ReadAvailableMemory;
  readonly observer: SandboxObserver;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const MIN_REFRESH_SECONDS = 15;

/** The lifecycle of all sandboxes of this node; `routes` is the proxy's view of them. */
export class Sandboxes implements SandboxService {
  readonly routes = new LiveSandboxes((live) => this.#wake(live));
  readonly #options: LifecycleOptions;
  readonly #metrics: SandboxMetrics;
  readonly #ending: Ending;
  readonly #creating: Creating;
  readonly #pausing: Pausing;
  readonly #starting: Starting;
  readonly #forking: Forking;
  readonly #snapshotting: Snapshotting;
  readonly #expiry: Expiry;
  #closing: Promise<ShutdownReport> | undefined;
  #comingBack: Promise<void> = Promise.resolve();

  constructor(options: LifecycleOptions) {
    this.#options = options;
    this.#metrics = new SandboxMetrics(options.metrics);
    this.#ending = new Ending({ ...options, sandboxes: this.routes, metrics: this.#metrics });
    const shared = { ...options, sandboxes: this.routes, metrics: this.#metrics };
    this.#starting = new Starting({ ...shared, onVmExit: (live, vm, end) => this.#onVmExit(live, vm, end) });
    this.#creating = new Creating({ ...options, starting: this.#starting, ending: this.#ending });
    this.#pausing = new Pausing({
      ...{ ...shared, ending: this.#ending },
      serve: (live, machine) => this.#starting.serve(live, machine),
    });
    this.#forking = new Forking({
      ...{ ...shared, ending: this.#ending, starting: this.#starting },
      requireRunning: (live) => this.#requireRunning(live),
      admit: (memoryMb) => this.#admit(memoryMb),
      enter: (record) => this.#enter(record),
    });
    this.#snapshotting = new Snapshotting({
      ...{ ...options, ending: this.#ending },
      requireRunning: (live) => this.#requireRunning(live),
    });
    this.#metrics.observeStates(this.routes);
    this.#expiry = new Expiry({ ...shared, pausing: this.#pausing, ending: this.#ending });
  }

  async create(options: CreateSandbox): Promise<SandboxView> {
    try {
      const origin = resolveOrigin(this.#options, options.template);
      return await this.#creating.create(this.#reserve(options, shapeOf(origin)), origin, options);
    } catch (error) {
      const fault = AenvError.from(error, 'the sandbox could not be started');
      this.#metrics.createFailed(fault.code);
      throw fault;
    }
  }

  get(sandboxId: string): SandboxView {
    return toView(this.#find(sandboxId).record);
  }

  list(query: ListQuery): ListPage {
    const page = this.#options.ledger.list(query);
    return { ...page, items: page.items.map(toView) };
  }

  async connect(sandboxId: string, timeoutSeconds: number, options: PauseOptions = { memory: true }) {
    const live = this.#find(sandboxId);
    if (live.lifecycle.state === 'running' && !live.busy) {
      this.#extend(live, timeoutSeconds);
      return { view: toView(live.record), resumed: false };
    }
    return await live.exclusive(async () => {
      if (live.lifecycle.state === 'paused') {
        return { view: await this.#resume(live, timeoutSeconds, options), resumed: true };
      }
      if (live.lifecycle.state !== 'running') throw this.#notRunning(live);
      this.#extend(live, timeoutSeconds);
      return { view: toView(live.record), resumed: false };
    });
  }

  async pause(sandboxId: string, options: PauseOptions): Promise<void> {
    const live = this.#find(sandboxId);
    await live.exclusive(async () => {
      // For its client it runs: only the shutdown of a daemon came between.
      if (comesBack(live)) return this.#pausing.stayDown(live);
      this.#requireRunning(live);
      await this.#pausing.pause(live, options);
    });
  }

  async fork(sandboxId: string, options: ForkOptions): Promise<readonly Fork[]> {
    return await this.#forking.fork(this.#find(sandboxId), options);
  }

  async snapshot(sandboxId: string, name?: SnapshotName): Promise<SnapshotRecord> {
    return await this.#snapshotting.snapshot(this.#find(sandboxId), name);
  }

  async resume(
    sandboxId: string,
    timeoutSeconds: number,
    options: ResumeOptions = { memory: true },
  ): Promise<SandboxView> {
    const live = this.#find(sandboxId);
    return await live.exclusive(async () => {
      if (live.lifecycle.state !== 'paused') throw sandboxNotPaused(sandboxId, live.lifecycle.state);
      return await this.#resume(live, timeoutSeconds, options);
    });
  }

  async setTimeout(sandboxId: string, timeoutSeconds: number): Promise<void> {
    this.#setEnd(this.#findRunning(sandboxId), this.#inSeconds(timeoutSeconds));
  }

  async refresh(sandboxId: string, seconds: number): Promise<void> {
    this.#extend(this.#findRunning(sandboxId), Math.max(seconds, MIN_REFRESH_SECONDS));
  }

  /** Of two kills at the same time both wait for the one end. A pause or a snapshot that is under way comes first. */
  async kill(sandboxId: string): Promise<void> {
    const live = this.#find(sandboxId);
    await this.#end(live, 'killed');
    if (live.releaseError !== undefined) {
      throw new AenvError('internal', `sandbox '${sandboxId}' is over, but parts of it could not be removed`, {
        cause: live.releaseError,
        remediation: 'The next start of the daemon removes what was left; its log names it.',
      });
    }
  }

  /** Takes up what an earlier daemon has paused. To be called once, before the API listens. */
  takeUpPaused(): void {
    for (const record of this.#options.ledger.live()) {
      if (record.state !== 'paused' || this.routes.get(record.sandboxId) !== undefined) continue;
      this.routes.add(new LiveSandbox(record, { state: 'paused' }));
      this.#options.observer.created(record.sandboxId, { templateID: record.templateId });
    }
    this.#metrics.observeStates(this.routes);
  }

  /** Goes on with what has outlived an earlier daemon. To be called once, before the API listens. */
  takeOver(adopted: readonly Adopted[]): void {
    for (const { record, machine, resources } of adopted) {
      const live = new LiveSandbox(record, { state: 'running' }, resources);
      this.routes.add(live);
      this.#options.observer.created(live.id, { templateID: record.templateId, endAt: record.endAt.toISOString() });
      this.#starting.attach(live, machine);
    }
    this.#metrics.observeStates(this.routes);
  }

  /** Lets those go on that an earlier daemon paused when it was shut down. In the background: close() ends it. */
  bringBack(): void {
    this.#comingBack = bringBack({
      sandboxes: this.routes,
      wake: (live) => this.#wake(live, comesBack),
      concurrency: this.#options.limits.maxConcurrentStarts,
      log: this.#options.log,
    });
  }

  close(): Promise<ShutdownReport> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  /** Checks the limits and writes the row, without a pause between the two. */
  #reserve(options: CreateSandbox, shape: SandboxShape): LiveSandbox {
    this.#admit(shape.memoryMb);
    return this.#enter(newRecord(options, shape, this.#options.clock.now()));
  }

  #admit(memoryMb: number, resumed?: LiveSandbox): void {
    if (this.#closing !== undefined) throw new AenvError('shutting_down', 'the daemon is shutting down');
    const memory = { wantedMb: memoryMb, availableMb: this.#options.readAvailableMemory() };
    admit(this.routes, this.#options.limits, memory, resumed);
  }

  #enter(record: SandboxRecord): LiveSandbox {
    this.#options.ledger.insert(record);
    const live = new LiveSandbox(record);
    this.routes.add(live);
    this.#options.observer.created(live.id, {
      templateID: record.templateId,
      endAt: record.endAt.toISOString(),
    });
    this.#metrics.observeStates(this.routes);
    return live;
  }

  /**
   * Traffic waits for it. It lives on as long as was asked for when it was made; after a shutdown it has what was left of its
   * time.
   * @param may whether it still is to be woken when its turn comes: one that was paused for good meanwhile stays so
   */
  async #wake(live: LiveSandbox, may = (one: LiveSandbox) => wakesForTraffic(one.record)): Promise<void> {
    await live.exclusive(async () => {
      if (live.lifecycle.state !== 'paused' || !may(live)) return;
      await this.#resume(live, comesBack(live) ? 0 : wakeSeconds(live.record), { memory: true });
    });
  }

  /**
   * Resumes a paused sandbox, in its turn: it keeps its identity and its tokens. Without its memory, where that was not
   * kept or is not wanted, it boots its disk.
   */
  async #resume(live: LiveSandbox, timeoutSeconds: number, options: ResumeOptions): Promise<SandboxView> {
    const { ledger, checkpoints, log } = this.#options;
    const { checkpoint, onTimeout } = live.record;
    if (checkpoint === undefined)
      throw new AenvError('internal', `sandbox '${live.id}' is paused without a checkpoint`);
    this.#admit(live.record.memoryMb, live);
    const back = comesBack(live);
    const change = { state: 'resuming', onTimeout: options.onTimeout ?? onTimeout } as const;
    live.record = ledger.update(live.id, 'paused', change) ?? live.record;
    live.apply({ type: 'resume' });
    this.#metrics.observeStates(this.routes);
    let view: SandboxView;
    try {
      await this.#options.faults?.hit(back ? 'comeback.row_resuming' : 'resume.row_resuming');
      view = await this.#starting.start(live, {
        ...{ was: 'resuming', comesBack: back },
        ...(options.memory && checkpoint.memory
          ? continuing(checkpoint)
          : await booting(live.record, checkpoint, checkpoints)),
        endAt: this.#inSeconds(Math.max(timeoutSeconds, (checkpoint.leftMs ?? 0) / 1000)),
      });
    } catch (error) {
      // Its end may have been asked for before that, or meanwhile.
      if (!(await this.#pausing.stayPaused(live))) await this.#ending.release(live);
      throw error;
    }
    await checkpoints.remove(checkpoint.id).catch((error: unknown) => {
      log.error('the checkpoint of a resumed sandbox could not be removed', { sandboxId: live.id, error });
    });
    await this.#options.faults?.hit(back ? 'comeback.checkpoint_removed' : 'resume.checkpoint_removed');
    return view;
  }

  #onVmExit(live: LiveSandbox, vm: MicroVm, exit: VmEnd): void {
    // Whoever pauses it finds out whether that matters.
    if (live.machine?.vm !== vm || live.lifecycle.state !== 'running') return;
    void this.#ending.lose(live, howVmEnded(exit));
  }

  /** What is under way comes first, except a start, which is broken off. */
  async #end(live: LiveSandbox, reason: EndRequest): Promise<void> {
    const { state } = live.lifecycle;
    if (state === 'killing') return live.gone;
    if (!live.busy || state === 'resuming') return this.#ending.end(live, reason);
    await live.exclusive(async () => {
      if (isFinal(live.lifecycle.state)) return;
      await (live.lifecycle.state === 'killing' ? live.gone : this.#ending.end(live, reason));
    });
  }

  async #shutDown(): Promise<ShutdownReport> {
    await this.#expiry.close();
    const { shutdown, limits, clock, log } = this.#options;
    const report = await new Shutdown({
      ...{ sandboxes: this.routes, pausing: this.#pausing, ending: this.#ending, clock, log },
      policy: shutdown,
      concurrency: limits.maxConcurrentStarts,
    }).run();
    await this.#comingBack;
    this.#ending.retryUnwritten();
    return report;
  }

  #find(sandboxId: string): LiveSandbox {
    const live = this.routes.get(sandboxId);
    if (live !== undefined && !isFinal(live.lifecycle.state)) return live;
    throw sandboxNotFound(sandboxId, this.#options.ledger.get(sandboxId));
  }

  #findRunning(sandboxId: string): LiveSandbox {
    const live = this.#find(sandboxId);
    if (live.lifecycle.state !== 'running') throw this.#notRunning(live);
    return live;
  }

  #requireRunning(live: LiveSandbox): void {
    if (live.lifecycle.state === 'paused') throw sandboxPaused(live.id);
    if (live.lifecycle.state !== 'running') throw this.#notRunning(live);
  }

  #notRunning(live: LiveSandbox): AenvError {
    const { state } = live.lifecycle;
    if (isFinal(state)) return sandboxNotFound(live.id, this.#options.ledger.get(live.id));
    return sandboxNotRunning(live.id, state);
  }

  #inSeconds(seconds: number): Date {
    return new Date(this.#options.clock.now() + seconds * 1000);
  }

  #extend(live: LiveSandbox, seconds: number): void {
    const endAt = this.#inSeconds(seconds);
    if (endAt > live.record.endAt) this.#setEnd(live, endAt);
  }

  #setEnd(live: LiveSandbox, endAt: Date): void {
    const record = this.#options.ledger.update(live.id, 'running', { endAt });
    if (record === undefined) throw new AenvError('internal', `the row of sandbox '${live.id}' is not as expected`);
    live.record = record;
    this.#options.observer.endChanged(live.id, endAt);
  }
}
