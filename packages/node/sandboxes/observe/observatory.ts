import type { HookResult } from '@aenv/contracts/envd/restore-api.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { EndReason, SandboxState } from '../contract.ts';
import { Gate } from '../limits/gate.ts';
import type {
  LoadSample,
  LogQuery,
  ObservedGuest,
  SandboxLogEntry,
  SandboxObservations,
  SandboxObserver,
} from './contract.ts';
import type { AskGuest } from './guest-report.ts';
import { entriesOfHook } from './hook-entries.ts';
import { LoadSeries } from './load-series.ts';
import { type ConsoleReader, Observation, RunningGuest } from './observation.ts';
import { Starts } from './starts.ts';

export interface ObservatoryOptions {
  /** time between two looks at a sandbox; the next one waits for the last */
  readonly sampleMs: number;
  /** how far back samples are kept */
  readonly keepMs: number;
  readonly askGuest: AskGuest;
  readonly openConsole: (path: string) => ConsoleReader;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Guests that are asked at the same time: looking at them must not get into the way of using them. */
const CONCURRENT_LOOKS = 8;
/** The first look comes soon, but after what a client does first. */
const FIRST_LOOK_MS = 1_000;
/**
 * How late a look may come while sandboxes are started. The first one takes an emulated guest a quarter of a second, four
 * times as long as later ones, and those of sixteen forks would take the last ones as long as their own start.
 */
const FIRST_LATE_MS = 30_000;
const LATE_MS = 10_000;
/** Sandboxes that are over and whose logs can still be read. */
const KEPT_LOGS = 100;

/** Looks at every running sandbox now and then, and remembers what has happened to it. */
export class Observatory implements SandboxObserver, SandboxObservations {
  readonly #options: ObservatoryOptions;
  readonly #alive = new Map<string, Observation>();
  /** in the order of their ends */
  readonly #over = new Map<string, Observation>();
  readonly #gate = new Gate({ concurrency: CONCURRENT_LOOKS, maxQueue: Number.POSITIVE_INFINITY });
  readonly #loops = new Set<Promise<void>>();
  readonly #starts = new Starts();

  constructor(options: ObservatoryOptions) {
    this.#options = options;
  }

  created(sandboxId: string, facts: Readonly<Record<string, string>>): void {
    const observation = new Observation();
    this.#alive.set(sandboxId, observation);
    observation.note(this.#now(), 'info', 'sandbox created', facts);
  }

  starting(): Disposable {
    return this.#starts.begin();
  }

  running(guest: ObservedGuest): void {
    const observation = this.#alive.get(guest.sandboxId);
    if (observation === undefined) return;
    observation.note(this.#now(), 'info', 'sandbox running');
    const { sampleMs, keepMs, openConsole } = this.#options;
    const series = new LoadSeries(Math.ceil(keepMs / sampleMs));
    const running = new RunningGuest(guest, series, openConsole(guest.consoleLog));
    observation.guest = running;
    const loop = this.#watch(running, observation).finally(() => this.#loops.delete(loop));
    this.#loops.add(loop);
  }

  hooksRan(sandboxId: string, hooks: readonly HookResult[]): void {
    const observation = this.#alive.get(sandboxId);
    for (const hook of hooks) {
      for (const entry of entriesOfHook(hook, this.#now())) observation?.log.add(entry);
    }
  }

  endChanged(sandboxId: string, endAt: Date): void {
    const end = endAt.toISOString();
    this.#alive.get(sandboxId)?.note(this.#now(), 'debug', `sandbox ends at ${end}`, { endAt: end });
  }

  ending(sandboxId: string): void {
    const observation = this.#alive.get(sandboxId);
    observation?.guest?.stop();
    if (observation !== undefined) observation.guest = undefined;
  }

  over(sandboxId: string, state: SandboxState, reason: EndReason, message?: string): void {
    const observation = this.#alive.get(sandboxId);
    if (observation === undefined) return;
    this.ending(sandboxId);
    const why = message === undefined ? '' : `: ${message}`;
    const level = reason === 'killed' || reason === 'expired' || reason === 'shutdown' ? 'info' : 'error';
    observation.note(this.#now(), level, `sandbox ${state} (${reason})${why}`, { state, reason });
    this.#alive.delete(sandboxId);
    this.#over.set(sandboxId, observation);
    const [oldest] = this.#over.keys();
    if (this.#over.size > KEPT_LOGS && oldest !== undefined) this.#over.delete(oldest);
  }

  samples(sandboxId: string, from?: number, to?: number): readonly LoadSample[] | undefined {
    return this.#alive.get(sandboxId)?.guest?.series.between(from, to);
  }

  latest(sandboxId: string): LoadSample | undefined {
    return this.#alive.get(sandboxId)?.guest?.series.latest();
  }

  logs(sandboxId: string, query: LogQuery): readonly SandboxLogEntry[] | undefined {
    return (this.#alive.get(sandboxId) ?? this.#over.get(sandboxId))?.log.read(query);
  }

  /** Stops all looks and waits for those under way. */
  async close(): Promise<void> {
    for (const { guest } of this.#alive.values()) guest?.stop();
    await Promise.all(this.#loops);
  }

  /** One sandbox after the other has its own rhythm, so that they are not all asked at once. */
  async #watch(running: RunningGuest, observation: Observation): Promise<void> {
    const { sampleMs, clock } = this.#options;
    const { signal } = running;
    let pauseMs = Math.min(FIRST_LOOK_MS, sampleMs);
    let lateMs = FIRST_LATE_MS;
    let failed = false;
    while (!signal.aborted) {
      try {
        await clock.sleep(pauseMs, signal);
        await this.#giveWay(lateMs, signal);
        const report = await this.#gate.run(
          () => this.#options.askGuest(running.guest, observation.cursor, signal),
          signal,
        );
        signal.throwIfAborted();
        await running.take(report, clock.now(), observation);
        failed = false;
      } catch (error) {
        if (signal.aborted) return;
        const { sandboxId } = running.guest;
        if (!failed) this.#options.log.warn('a sandbox could not be looked at', { sandboxId, error: String(error) });
        failed = true;
      }
      pauseMs = sampleMs;
      lateMs = LATE_MS;
    }
  }

  /** What somebody waits for goes first. */
  async #giveWay(lateMs: number, signal: AbortSignal): Promise<void> {
    const none = this.#starts.none();
    if (none === undefined) return;
    const over = new AbortController();
    const late = this.#options.clock.sleep(lateMs, AbortSignal.any([signal, over.signal]));
    try {
      await Promise.race([none, late]);
    } finally {
      over.abort();
      await late.catch(() => {});
    }
  }

  #now(): number {
    return this.#options.clock.now();
  }
}
