import type { RouteDirectory, RouteLookup } from '../../proxy/contract.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';
import type { SandboxState } from '../contract.ts';
import type { LiveSandbox } from './live-sandbox.ts';

/** Whether traffic brings it back. To boot one takes so long, and loses so much, that somebody has to ask for it. */
export function wakesForTraffic({ autoResume, checkpoint }: SandboxRecord): boolean {
  return (autoResume && checkpoint?.memory !== false) || checkpoint?.leftMs !== undefined;
}

/** The sandboxes that this daemon holds parts of, and the proxy's view of them. */
export class LiveSandboxes implements RouteDirectory {
  readonly #byId = new Map<string, LiveSandbox>();
  readonly #listeners = new Set<(incarnation: string) => void>();
  readonly #wake: (live: LiveSandbox) => Promise<void>;

  /** @param wake brings a sandbox back that traffic is waiting for */
  constructor(wake: (live: LiveSandbox) => Promise<void> = async () => {}) {
    this.#wake = wake;
  }

  add(live: LiveSandbox): void {
    this.#byId.set(live.id, live);
  }

  delete(live: LiveSandbox): void {
    this.#byId.delete(live.id);
  }

  get(sandboxId: string): LiveSandbox | undefined {
    return this.#byId.get(sandboxId);
  }

  /** A copy, so that whoever walks over it may change the set. */
  all(): readonly LiveSandbox[] {
    return [...this.#byId.values()];
  }

  count(state: SandboxState): number {
    return this.all().filter((live) => live.lifecycle.state === state).length;
  }

  lookup(sandboxId: string): RouteLookup {
    const live = this.#byId.get(sandboxId);
    if (live === undefined) return { kind: 'unknown' };
    const { state } = live.lifecycle;
    if (state === 'running' && live.target !== undefined) return { kind: 'running', target: live.target };
    const asleep = wakesForTraffic(live.record) && (state === 'paused' || state === 'resuming' || state === 'pausing');
    if (!asleep) return { kind: 'unavailable', state };
    const { trafficAccessToken: token } = live.record;
    const access = token === undefined ? {} : { trafficAccessToken: token };
    return { kind: 'unavailable', state, wake: () => this.#wake(live), ...access };
  }

  onEnd(listener: (incarnation: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Traffic to the sandbox ends now: lookups no longer give it, and every listener is told. */
  withdraw(live: LiveSandbox): void {
    const incarnation = live.target?.incarnation;
    live.target = undefined;
    if (incarnation === undefined) return;
    for (const listener of [...this.#listeners]) listener(incarnation);
  }
}
