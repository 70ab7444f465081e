import { randomBytes } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import type { SandboxLedger } from '../store/sandbox-ledger.ts';
import { toView } from '../store/sandbox-record.ts';
import type { Template, TemplateService } from '../templates/contract.ts';
import { type AdmissionLimits, admit } from './admission.ts';
import type { CreateSandbox, ListPage, ListQuery, SandboxService, SandboxView } from './contract.ts';
import { Ending } from './ending.ts';
import { sandboxNotFound, sandboxNotRunning } from './errors.ts';
import type { Launch, Launched } from './launch/launch.ts';
import { Stopwatch } from './launch/phases.ts';
import type { SerialLogs } from './launch/serial-logs.ts';
import { isFinal } from './lifecycle/state.ts';
import { Gate } from './limits/gate.ts';
import type { ReadAvailableMemory } from './limits/memory.ts';
import { LiveSandbox } from './live/live-sandbox.ts';
import { LiveSandboxes } from './live/live-sandboxes.ts';
import { SandboxMetrics } from './metrics.ts';
import { newRecord } from './new-record.ts';
import type { SandboxObserver } from './observe/contract.ts';
import { Sweep } from './sweep.ts';

export interface SandboxLimits extends AdmissionLimits {
  readonly maxConcurrentStarts: number;
  readonly maxQueuedStarts: number;
}

export interface LifecycleOptions {
  readonly ledger: SandboxLedger;
  readonly templates: TemplateService;
  readonly launch: Launch;
  readonly limits: SandboxLimits;
  readonly keepEnded: { readonly days: number; readonly count: number };
  readonly serialLogs: SerialLogs;
  readonly readAvailableMemory: ReadAvailableMemory;
  readonly observer: SandboxObserver;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const SWEEP_MS = 1_000;
const PRUNE_MS = 3_600_000;
const DAY_MS = 86_400_000;
const MIN_REFRESH_SECONDS = 15;
/** How long close() waits for VMs and namespaces to go; what is left then is found at the next start. */
const CLOSE_MS = 20_000;

/** The lifecycle of all sandboxes of this node; `routes` is the proxy's view of them. */
export class Sandboxes implements SandboxService {
  readonly routes = new LiveSandboxes();
  readonly #options: LifecycleOptions;
  readonly #metrics: SandboxMetrics;
  readonly #ending: Ending;
  readonly #starts: Gate;
  readonly #sweep: Sweep;
  #closing: Promise<void> | undefined;
  #nextPrune = 0;

  constructor(options: LifecycleOptions) {
    const { limits, log, clock } = options;
    this.#options = options;
    this.#metrics = new SandboxMetrics(options.metrics);
    this.#ending = new Ending({ ...options, sandboxes: this.routes, metrics: this.#metrics });
    this.#starts = new Gate({ concurrency: limits.maxConcurrentStarts, maxQueue: limits.maxQueuedStarts });
    this.#metrics.observeStates(this.routes);
    this.#sweep = new Sweep({ clock, log, intervalMs: SWEEP_MS, round: () => this.#round() });
  }

  async create(options: CreateSandbox): Promise<SandboxView> {
    try {
      const template = this.#options.templates.resolve(options.template);
      return await this.#start(this.#reserve(options, template));
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

  async connect(sandboxId: string, timeoutSeconds: number) {
    const live = this.#findRunning(sandboxId);
    this.#extend(live, timeoutSeconds);
    return { view: toView(live.record), resumed: false };
  }

  async setTimeout(sandboxId: string, timeoutSeconds: number): Promise<void> {
    this.#setEnd(this.#findRunning(sandboxId), this.#inSeconds(timeoutSeconds));
  }

  async refresh(sandboxId: string, seconds: number): Promise<void> {
    this.#extend(this.#findRunning(sandboxId), Math.max(seconds, MIN_REFRESH_SECONDS));
  }

  /** Of two kills at the same time both wait for the one end. */
  async kill(sandboxId: string): Promise<void> {
    const live = this.#find(sandboxId);
    await (live.lifecycle.state === 'killing' ? live.gone : this.#ending.end(live, 'killed'));
    if (live.releaseError !== undefined) {
      throw new AenvError('internal', `sandbox '${sandboxId}' is over, but parts of it could not be removed`, {
        cause: live.releaseError,
        remediation: 'The next start of the daemon removes what was left; its log names it.',
      });
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  /** Checks the limits and writes the row, without a pause between the two. */
  #reserve(options: CreateSandbox, template: Template): LiveSandbox {
    if (this.#closing !== undefined) throw new AenvError('shutting_down', 'the daemon is shutting down');
    const memory = { wantedMb: template.memoryMb, availableMb: this.#options.readAvailableMemory() };
    admit(this.routes, this.#options.limits, memory);
    const record = newRecord(options, template, this.#options.clock.now());
    this.#options.ledger.insert(record);
    const live = new LiveSandbox(record, template);
    this.routes.add(live);
    this.#options.observer.created(live.id, {
      templateID: record.templateId,
      endAt: record.endAt.toISOString(),
    });
    this.#metrics.observeStates(this.routes);
    return live;
  }

  async #start(live: LiveSandbox): Promise<SandboxView> {
    const stopwatch = new Stopwatch();
    try {
      const waiting = Promise.withResolvers<void>();
      const queue = stopwatch.time('queue', () => waiting.promise);
      const launched = await this.#starts.run(async () => {
        waiting.resolve();
        await queue;
        return await this.#launch(live, stopwatch);
      }, live.startSignal);
      // The end may have been asked for while the last answer of the guest was on its way.
      live.startSignal.throwIfAborted();
      return this.#publish(live, launched, stopwatch);
    } catch (error) {
      await this.#ending.release(live, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  #launch(live: LiveSandbox, stopwatch: Stopwatch): Promise<Launched> {
    const { record, template } = live;
    return this.#options.launch({
      sandboxId: live.id,
      template,
      internet: record.allowInternetAccess !== false,
      hostSecret: record.hostSecret,
      init: {
        envVars: { ...template.start.envVars, ...record.envVars },
        accessToken: record.envdAccessToken ?? null,
        defaultUser: template.start.user,
        defaultWorkdir: template.start.workdir,
        sandboxId: live.id,
        templateId: template.templateId,
        hostname: live.id,
        seed: randomBytes(32).toString('base64'),
      },
      resources: live.resources,
      stopwatch,
      signal: live.startSignal,
      onVmStarted: ({ slot, volume, vm }) => {
        const places = { slotIndex: slot.index, netns: slot.netns, volumeId: volume.id };
        const change = { ...places, vm: vm.record, incarnation: vm.record.incarnation };
        live.record = this.#options.ledger.update(live.id, 'creating', change) ?? live.record;
      },
    });
  }

  #publish(live: LiveSandbox, { vm, slot, answer }: Launched, stopwatch: Stopwatch): SandboxView {
    const now = this.#options.clock.now();
    this.#options.templates.recordSpawn(live.template.templateId);
    // The time to live counts from here: the client gets all of what it asked for.
    const ttl = live.record.endAt.getTime() - live.record.createdAt.getTime();
    const record = this.#options.ledger.update(live.id, 'creating', {
      state: 'running',
      startedAt: new Date(now),
      endAt: new Date(now + ttl),
      envdVersion: answer.envdVersion,
      bootId: answer.bootId,
      incarnation: vm.record.incarnation,
      vm: vm.record,
    });
    if (record === undefined) throw new AenvError('internal', `the row of sandbox '${live.id}' is not as expected`);
    // From here on nothing may throw: what fails now would no longer be undone.
    live.record = record;
    live.apply({ type: 'ready' });
    live.target = {
      sandboxId: live.id,
      incarnation: vm.record.incarnation,
      address: slot.hostAddress,
      hostSecret: record.hostSecret,
      ...(record.trafficAccessToken === undefined ? {} : { trafficAccessToken: record.trafficAccessToken }),
      ...(record.network.maskRequestHost === undefined ? {} : { maskRequestHost: record.network.maskRequestHost }),
      httpsPorts: record.network.httpsPorts,
    };
    this.#options.observer.running({
      sandboxId: live.id,
      address: slot.hostAddress,
      hostSecret: record.hostSecret,
      consoleLog: vm.record.serialLog,
    });
    vm.exited.then(
      (exit) => this.#onVmExit(live, exit),
      (error: unknown) => this.#onVmExit(live, { code: null, signal: null, lastLines: String(error) }),
    );
    const ms = stopwatch.read();
    this.#metrics.created(ms);
    this.#metrics.observeStates(this.routes);
    this.#options.log.info('sandbox running', { sandboxId: live.id, bootId: answer.bootId, ms });
    return toView(record);
  }

  #onVmExit(live: LiveSandbox, exit: { code: number | null; signal: string | null; lastLines: string }): void {
    if (live.lifecycle.state !== 'running') return;
    const how = exit.signal === null ? `with exit code ${exit.code}` : `by ${exit.signal}`;
    void this.#ending.lose(live, `the VM process ended ${how}: ${exit.lastLines}`);
  }

  /** Everything that time asks for. Each sandbox is looked at again here, right before it is ended. */
  #round(): void {
    const now = this.#options.clock.now();
    this.#ending.retryUnwritten();
    for (const live of this.routes.all()) {
      if (live.lifecycle.state !== 'running' || live.record.endAt.getTime() > now) continue;
      void this.#ending.end(live, 'expired');
    }
    if (now >= this.#nextPrune) {
      this.#nextPrune = now + PRUNE_MS;
      const { days, count } = this.#options.keepEnded;
      this.#options.ledger.prune(new Date(now - days * DAY_MS), count);
    }
  }

  async #shutDown(): Promise<void> {
    await this.#sweep.close();
    const ends = this.routes.all().map((live) => {
      const { state } = live.lifecycle;
      return isFinal(state) || state === 'killing' ? live.gone : this.#ending.end(live, 'shutdown');
    });
    const timeout = new AbortController();
    const limit = this.#options.clock.sleep(CLOSE_MS, timeout.signal).then(
      () =>
        this.#options.log.error('sandboxes did not end in time', { left: this.routes.all().map((live) => live.id) }),
      () => {},
    );
    await Promise.race([Promise.all(ends), limit]);
    timeout.abort();
    this.#ending.retryUnwritten();
  }

  #find(sandboxId: string): LiveSandbox {
    const live = this.routes.get(sandboxId);
    if (live !== undefined && !isFinal(live.lifecycle.state)) return live;
    throw sandboxNotFound(sandboxId, this.#options.ledger.get(sandboxId));
  }

  #findRunning(sandboxId: string): LiveSandbox {
    const live = this.#find(sandboxId);
    if (live.lifecycle.state !== 'running') throw sandboxNotRunning(sandboxId, live.lifecycle.state);
    return live;
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
