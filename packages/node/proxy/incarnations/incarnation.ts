import type { Socket } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { ProxyConfig } from '../config.ts';
import type { RouteTarget } from '../contract.ts';
import { breakSocket } from '../sockets/ends.ts';
import { dial } from './dial.ts';
import { GuestAgent, type GuestRequestOptions } from './guest-agent.ts';

/** One request's or upgraded connection's stay in an incarnation. */
export interface Lease {
  release(): void;
}

/**
 * All that the proxy holds of one run of one VM: its agents, every open socket and every request under way. `end()`
 * takes it all down at once.
 */
export class Incarnation {
  /** keeps connections for reuse */
  readonly shared: GuestAgent;
  /** a new connection for each request, closed after it */
  readonly single: GuestAgent;
  readonly #target: RouteTarget;
  readonly #config: ProxyConfig;
  readonly #clock: Clock;
  readonly #sockets = new Set<Socket>();
  readonly #leases = new Set<() => void>();
  readonly #dialling = new Set<AbortController>();
  #ended = false;

  constructor(target: RouteTarget, config: ProxyConfig, clock: Clock) {
    this.#target = target;
    this.#config = config;
    this.#clock = clock;
    const connect = (guest: GuestRequestOptions['guest']) => this.#connect(guest);
    this.shared = new GuestAgent({ dial: connect, idleMs: config.idleMs, maxIdle: config.maxIdlePerSandbox });
    this.single = new GuestAgent({ dial: connect, idleMs: 0, maxIdle: 0 });
  }

  /**
   * Counts a request in. `onEnd` is called when the incarnation ends before `release()`.
   * @throws AenvError `too_many_connections`, `sandbox_gone`
   */
  lease(onEnd: () => void): Lease {
    if (this.#ended) throw sandboxGone(this.#target.sandboxId);
    if (this.#leases.size >= this.#config.maxConnectionsPerSandbox) {
      throw new AenvError(
        'too_many_connections',
        `The sandbox has ${this.#leases.size} open connections, which is the limit.`,
        { details: { sandboxId: this.#target.sandboxId } },
      );
    }
    const entry = () => onEnd();
    this.#leases.add(entry);
    return { release: () => void this.#leases.delete(entry) };
  }

  /** Breaks every connection at once and calls back all leases. Idempotent. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const given of this.#dialling) given.abort(sandboxLeft(this.#target.sandboxId));
    const leases = [...this.#leases];
    this.#leases.clear();
    for (const onEnd of leases) onEnd();
    for (const socket of this.#sockets) breakSocket(socket);
    this.shared.destroy();
    this.single.destroy();
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  get active(): number {
    return this.#leases.size;
  }

  async #connect(guest: GuestRequestOptions['guest']): Promise<Socket> {
    if (this.#ended) throw sandboxGone(this.#target.sandboxId);
    const given = new AbortController();
    const giveUp = () => given.abort(guest.signal.reason);
    guest.signal.addEventListener('abort', giveUp, { once: true });
    if (guest.signal.aborted) giveUp();
    this.#dialling.add(given);
    try {
      const socket = await dial({
        target: this.#target,
        port: guest.port,
        host: guest.host,
        signal: given.signal,
        clock: this.#clock,
        config: this.#config,
      });
      if (given.signal.aborted) {
        socket.destroy();
        throw given.signal.reason;
      }
      this.#sockets.add(socket);
      // Whoever uses the socket learns of an error by its end; unused, it must not bring the process down.
      socket.on('error', () => {});
      socket.once('close', () => this.#sockets.delete(socket));
      return socket;
    } finally {
      this.#dialling.delete(given);
      guest.signal.removeEventListener('abort', giveUp);
    }
  }
}

export function sandboxGone(sandboxId: string): AenvError {
  return new AenvError('sandbox_gone', 'The sandbox was not found', { details: { sandboxId } });
}

/** For a request that was under way when its sandbox was paused or ended. */
export function sandboxLeft(sandboxId: string): AenvError {
  return new AenvError('sandbox_gone', 'The sandbox was paused or ended before it had answered', {
    remediation: `Check it with \`aenv get ${sandboxId}\`; repeat the request, or resume it first, if it is paused.`,
    details: { sandboxId },
  });
}
