import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { Journal } from './journal.ts';
import { type LaunchOptions, launch } from './launch.ts';
import { DEFAULT_OUTPUT_LIMITS, type OutputLimits } from './output.ts';
import { type ProcessIdentity, RunningProcess } from './running-process.ts';
import type { StandBy } from './stand-by.ts';

/** How a client names a process. */
export type Selector = { readonly pid: number } | { readonly tag: string };

export interface ProcessTableOptions {
  readonly output: OutputLimits;
  /** how long the end of a process can still be asked for, `ms` */
  readonly keepEndedMs: number;
}

export const DEFAULT_PROCESS_TABLE: ProcessTableOptions = { output: DEFAULT_OUTPUT_LIMITS, keepEndedMs: 30_000 };

/** All processes that were started here: those that run, and for a while those that have ended. */
export class ProcessTable {
  /** what has happened here, for the host */
  readonly journal = new Journal();
  readonly #options: ProcessTableOptions;
  readonly #running = new Map<number, RunningProcess>();
  readonly #ended = new Map<number, RunningProcess>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #standBy: StandBy | undefined;

  /** @param standBy where a process may wait to become the next one */
  constructor(options: ProcessTableOptions = DEFAULT_PROCESS_TABLE, standBy?: StandBy) {
    this.#options = options;
    this.#standBy = standBy;
  }

  /** Has what the next start needs ready. */
  warmUp(): void {
    this.#standBy?.refill();
  }

  /** Those that run, in the order of their start. */
  list(): RunningProcess[] {
    return [...this.#running.values()];
  }

  /** Starts a process; see `launch` for what it throws. */
  async start(options: Omit<LaunchOptions, 'standBy'>, identity: ProcessIdentity): Promise<RunningProcess> {
    const standBy = this.#standBy;
    const launched = await launch(standBy === undefined ? options : { ...options, standBy });
    const running = new RunningProcess(launched, identity, this.#options.output);
    // The kernel gives numbers out again: what has ended under this one is history.
    this.#ended.delete(running.pid);
    this.#running.set(running.pid, running);
    this.journal.started(running.pid, identity.config);
    void running.ended.then(() => this.#end(running));
    return running;
  }

  /** @throws AenvError `process_not_found` */
  find(selector: Selector): RunningProcess {
    const found = search(this.#running, selector);
    if (found === undefined) throw notFound(selector);
    return found;
  }

  /** Like `find`, also for what has ended a short while ago. */
  findRecent(selector: Selector): RunningProcess {
    const found = search(this.#running, selector) ?? search(this.#ended, selector);
    if (found === undefined) throw notFound(selector);
    return found;
  }

  /** Kills everything; for tests and for the end of envd. */
  async close(): Promise<void> {
    this.#standBy?.close();
    const running = this.list();
    for (const process of running) {
      try {
        process.signal('SIGKILL');
      } catch {
        // it ends already
      }
    }
    await Promise.all(running.map((process) => process.ended));
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #end(process: RunningProcess): void {
    if (this.#running.get(process.pid) === process) this.#running.delete(process.pid);
    this.#ended.set(process.pid, process);
    this.journal.ended(process.pid, process.identity.config, process.report?.status ?? '');
    // Whoever asked hears of the end first.
    if (this.#standBy !== undefined) setImmediate(() => this.#standBy?.refill());
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (this.#ended.get(process.pid) === process) this.#ended.delete(process.pid);
    }, this.#options.keepEndedMs);
    timer.unref();
    this.#timers.add(timer);
  }
}

// Of several processes with one tag, the latest is meant.
function search(processes: ReadonlyMap<number, RunningProcess>, selector: Selector): RunningProcess | undefined {
  if ('pid' in selector) return processes.get(selector.pid);
  return [...processes.values()].findLast((process) => process.identity.tag === selector.tag);
}

function notFound(selector: Selector): AenvError {
  const what = 'pid' in selector ? `pid ${selector.pid}` : `tag '${selector.tag}'`;
  return new AenvError('process_not_found', `process with ${what} not found`);
}
