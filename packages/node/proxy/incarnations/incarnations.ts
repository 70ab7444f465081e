import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { ProxyConfig } from '../config.ts';
import type { RouteDirectory, RouteTarget } from '../contract.ts';
import { Incarnation } from './incarnation.ts';

/** Ended incarnations remembered, for look-ups that raced with the end. Far more than can end within one look-up. */
const MAX_ENDED = 4096;

/** The incarnations that have connections, made on first use and ended when the directory says so. */
export class Incarnations {
  readonly #config: ProxyConfig;
  readonly #clock: Clock;
  readonly #live = new Map<string, Incarnation>();
  readonly #ended = new Set<string>();
  readonly #unsubscribe: () => void;
  #closed = false;

  constructor(directory: RouteDirectory, config: ProxyConfig, clock: Clock) {
    this.#config = config;
    this.#clock = clock;
    this.#unsubscribe = directory.onEnd((incarnation) => this.#end(incarnation));
  }

  /** undefined when this incarnation has ended, whatever the directory said a moment ago. */
  of(target: RouteTarget): Incarnation | undefined {
    if (this.#closed || this.#ended.has(target.incarnation)) return undefined;
    let incarnation = this.#live.get(target.incarnation);
    if (incarnation === undefined) {
      incarnation = new Incarnation(target, this.#config, this.#clock);
      this.#live.set(target.incarnation, incarnation);
    }
    return incarnation;
  }

  /** Sockets to sandboxes that are open now, idle ones included, and requests under way. */
  stats(): { readonly sockets: number; readonly active: number } {
    let sockets = 0;
    let active = 0;
    for (const incarnation of this.#live.values()) {
      sockets += incarnation.openSockets;
      active += incarnation.active;
    }
    return { sockets, active };
  }

  /** Breaks everything. */
  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    for (const incarnation of this.#live.values()) incarnation.end();
    this.#live.clear();
  }

  #end(id: string): void {
    this.#ended.add(id);
    const [oldest] = this.#ended;
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
    this.#live.get(id)?.end();
    this.#live.delete(id);
  }
}
