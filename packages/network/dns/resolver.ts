import { askTcp, askUdp, type UpstreamAnswer, type UpstreamQuery } from './exchange.ts';
import { RCODE } from './message.ts';
import type { Upstream } from './resolv-conf.ts';

export interface ResolverTimes {
  /** an upstream that has not answered after so many `ms` is no longer waited for alone */
  readonly hedgeMs: number;
  /** limit of `ms` for the whole question while no upstream has answered lately */
  readonly deadMs: number;
  /** the same while upstreams do answer, so that the name itself is slow */
  readonly slowMs: number;
}

const TIMES: ResolverTimes = { hedgeMs: 700, deadMs: 1_800, slowMs: 4_500 };
const LATELY_MS = 30_000;

export type Transport = 'udp' | 'tcp';

/** Asks the host's upstreams: the first one, and the next ones when it fails, is slow or does not want to answer. */
export class Resolver {
  readonly #upstreams: () => Promise<readonly Upstream[]>;
  readonly #times: ResolverTimes;
  #answeredAt = Number.NEGATIVE_INFINITY;

  constructor(upstreams: () => Promise<readonly Upstream[]>, times: ResolverTimes = TIMES) {
    this.#upstreams = upstreams;
    this.#times = times;
  }

  /** The best answer in time, or undefined when there is none. */
  async resolve(query: UpstreamQuery, transport: Transport, signal: AbortSignal): Promise<UpstreamAnswer | undefined> {
    const { hedgeMs, deadMs, slowMs } = this.#times;
    const upstreams = await this.#upstreams();
    const [first] = upstreams;
    if (first === undefined) return undefined;
    // UDP may lose a packet, so a single upstream is asked twice.
    const attempts = upstreams.length === 1 ? [first, first] : upstreams;
    const limit = performance.now() - this.#answeredAt < LATELY_MS ? slowMs : deadMs;
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    const timer = setTimeout(() => stop.abort(new Error('no upstream answered in time')), limit);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const ask = (upstream: Upstream) => this.#ask(upstream, query, transport, stop.signal);
      const answer = await race(attempts, hedgeMs, stop.signal, ask);
      if (answer !== undefined) this.#answeredAt = performance.now();
      return answer;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      // Ends the attempts that lost.
      stop.abort();
    }
  }

  async #ask(
    upstream: Upstream,
    query: UpstreamQuery,
    transport: Transport,
    stop: AbortSignal,
  ): Promise<UpstreamAnswer> {
    const [usual, other] = transport === 'udp' ? [askUdp, askTcp] : [askTcp, askUdp];
    if (transport === 'tcp') return await usual(upstream, query, stop).catch(() => other(upstream, query, stop));
    const answer = await usual(upstream, query, stop);
    if (!answer.message.truncated) return answer;
    return await other(upstream, query, stop).catch(() => answer);
  }
}

/**
 * Starts attempts one after the other, the next one when `hedgeMs` have passed or the last one failed. The first answer
 * that settles the question wins; a mere failure code of an upstream is kept for when nothing better comes.
 */
function race(
  attempts: readonly Upstream[],
  hedgeMs: number,
  stop: AbortSignal,
  ask: (upstream: Upstream) => Promise<UpstreamAnswer>,
): Promise<UpstreamAnswer | undefined> {
  const { promise, resolve } = Promise.withResolvers<UpstreamAnswer | undefined>();
  let fallback: UpstreamAnswer | undefined;
  let started = 0;
  let running = 0;
  let hedge: NodeJS.Timeout | undefined;
  const startNext = () => {
    clearTimeout(hedge);
    if (stop.aborted) return resolve(fallback);
    const upstream = attempts[started];
    if (upstream === undefined) {
      if (running === 0) resolve(fallback);
      return;
    }
    started += 1;
    running += 1;
    hedge = setTimeout(startNext, hedgeMs);
    ask(upstream).then(
      (answer) => {
        running -= 1;
        if (isSettled(answer)) return resolve(answer);
        fallback ??= answer;
        startNext();
      },
      () => {
        running -= 1;
        startNext();
      },
    );
  };
  const onStop = () => resolve(fallback);
  stop.addEventListener('abort', onStop, { once: true });
  startNext();
  return promise.finally(() => {
    clearTimeout(hedge);
    stop.removeEventListener('abort', onStop);
  });
}

function isSettled({ message }: UpstreamAnswer): boolean {
  return message.rcode === RCODE.noError || message.rcode === RCODE.nxDomain;
}
