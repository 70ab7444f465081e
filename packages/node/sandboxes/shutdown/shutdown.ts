import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Ending } from '../ending.ts';
import { isFinal } from '../lifecycle/state.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { LiveSandboxes } from '../live/live-sandboxes.ts';
import type { Pausing } from '../pausing/pausing.ts';
import type { ShutdownReport } from './report.ts';

export interface ShutdownPolicy {
  /** what becomes of sandboxes that run */
  readonly action: 'pause' | 'kill';
  /** time in which pauses may begin, in `ms`; those whose turn has not come by then are ended */
  readonly timeoutMs: number;
}

export interface ShutdownOptions {
  readonly sandboxes: LiveSandboxes;
  readonly pausing: Pausing;
  readonly ending: Ending;
  readonly policy: ShutdownPolicy;
  /** pauses at the same time; each reads and writes as fast as it can */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How long what is under way when time is up may still take; what is left then is found at the next start. */
const GRACE_MS = 20_000;

/** What keeps memory from being kept, but not the disk, which takes less room and goes on under any VMM. */
const DISK_ALONE: readonly string[] = ['snapshot_incompatible', 'no_space'];

/**
 * How all sandboxes of a node come to rest. What runs is paused and remembers that it ran; what cannot be paused is ended,
 * and says why. A start is broken off; a resume, too, and its sandbox stays paused. No start may begin any more.
 */
export class Shutdown {
  readonly #options: ShutdownOptions;
  readonly #paused = new Set<string>();
  readonly #ended = new Set<string>();
  readonly #failures: ShutdownReport['failures'][number][] = [];
  #pausesUntil = 0;

  constructor(options: ShutdownOptions) {
    this.#options = options;
  }

  /** Never longer than the policy's time and twenty seconds. */
  async run(): Promise<ShutdownReport> {
    const { sandboxes, policy, clock, log } = this.#options;
    this.#pausesUntil = clock.now() + policy.timeoutMs;
    const all = sandboxes.all();
    const timeout = new AbortController();
    let late = false;
    const limit = clock.sleep((policy.action === 'pause' ? policy.timeoutMs : 0) + GRACE_MS, timeout.signal).then(
      () => {
        late = true;
      },
      () => {},
    );
    await Promise.race([this.#settle(all), limit]);
    timeout.abort();
    const left = late ? sandboxes.all().filter((live) => !atRest(live)) : [];
    const report = {
      paused: [...this.#paused],
      ended: [...this.#ended],
      failures: this.#failures,
      left: left.map((live) => live.id),
    };
    if (late) log.error('sandboxes did not end in time; the next start finds them', { left: report.left });
    if (all.length > 0) log.info('sandboxes are at rest', { paused: report.paused.length, ended: report.ended.length });
    return report;
  }

  async #settle(all: readonly LiveSandbox[]): Promise<void> {
    const queue = all.filter((live) => this.#options.policy.action === 'pause' && live.lifecycle.state !== 'creating');
    const others = all.filter((live) => !queue.includes(live));
    const worker = async () => {
      for (let live = queue.shift(); live !== undefined; live = queue.shift()) await this.#rest(live);
    };
    await Promise.all([
      ...others.map((live) => this.#rest(live)),
      ...Array.from({ length: this.#options.concurrency }, worker),
    ]);
  }

  async #rest(live: LiveSandbox): Promise<void> {
    const stopping = new AenvError('shutting_down', `sandbox '${live.id}' was not started: the daemon shuts down`);
    if (live.lifecycle.state === 'resuming') live.cancelStart(stopping);
    if (live.lifecycle.state === 'creating') return await this.#end(live);
    // Whatever is under way comes first.
    await live.exclusive(async () => {
      const { state } = live.lifecycle;
      if (state === 'running') await this.#pauseOrEnd(live);
      else if (state === 'killing' || isFinal(state)) await live.gone;
    });
  }

  async #pauseOrEnd(live: LiveSandbox): Promise<void> {
    const { policy, pausing, clock, log } = this.#options;
    if (policy.action === 'kill') return await this.#end(live);
    try {
      if (clock.now() >= this.#pausesUntil) throw new Error('there was no time left for it');
      await pausing.pause(live, { comesBack: true }).catch(async (error: unknown) => {
        if (!(error instanceof AenvError) || !DISK_ALONE.includes(error.code)) throw error;
        log.warn('a sandbox is paused without its memory, which cannot be kept', { sandboxId: live.id, error });
        await pausing.pause(live, { memory: false, comesBack: true });
      });
      this.#paused.add(live.id);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.error('a sandbox could not be paused by the shutdown and is ended', { sandboxId: live.id, error });
      this.#failures.push({ sandboxId: live.id, reason });
      if (live.lifecycle.state === 'running') await this.#end(live, `it could not be paused: ${reason}`);
      else this.#ended.add(live.id);
    }
  }

  async #end(live: LiveSandbox, message?: string): Promise<void> {
    this.#ended.add(live.id);
    await this.#options.ending.end(live, 'shutdown', message);
  }
}

function atRest({ lifecycle: { state } }: LiveSandbox): boolean {
  return state === 'paused' || isFinal(state);
}
