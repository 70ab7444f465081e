import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import { admit, requireAccess } from './admission.ts';
import { answerError, errorAnswer } from './answers/answer.ts';
import { writeRawAnswer } from './answers/raw-answer.ts';
import type { ProxyConfig } from './config.ts';
import type { RouteDirectory } from './contract.ts';
import { forwardHttp } from './forward/forward-http.ts';
import { forwardUpgrade } from './forward/forward-upgrade.ts';
import type { Passage } from './forward/passage.ts';
import { sandboxGone } from './incarnations/incarnation.ts';
import { Incarnations } from './incarnations/incarnations.ts';
import { labelOf, ProxyMetrics } from './proxy-metrics.ts';
import type { SandboxRoute } from './routing/route.ts';
import { PassingBytes } from './sockets/passing-bytes.ts';

export interface SandboxProxyOptions {
  readonly directory: RouteDirectory;
  readonly config: ProxyConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/**
 * The data plane: requests and upgrades on their way to servers in sandboxes. Answers every request itself, never
 * throws. Connections to a sandbox belong to its incarnation and end with it.
 */
export class SandboxProxy {
  readonly #options: SandboxProxyOptions;
  readonly #incarnations: Incarnations;
  readonly #metrics: ProxyMetrics;
  readonly #bytes = new PassingBytes();

  constructor(options: SandboxProxyOptions) {
    this.#options = options;
    this.#incarnations = new Incarnations(options.directory, options.config, options.clock);
    this.#metrics = new ProxyMetrics(options.metrics);
  }

  request(request: IncomingMessage, response: ServerResponse, route: SandboxRoute): void {
    const { drainMs } = this.#options.config;
    this.#serve(
      'http',
      request,
      request.socket,
      route,
      (passage) => forwardHttp(passage, response),
      (error) => answerError(request, response, error, drainMs),
    );
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, route: SandboxRoute): void {
    const { drainMs } = this.#options.config;
    this.#serve(
      'upgraded',
      request,
      socket,
      route,
      (passage) => forwardUpgrade(passage, socket, head),
      (error) => writeRawAnswer(socket, errorAnswer(error, request), drainMs),
    );
  }

  /** Sockets to sandboxes that are open now, idle ones included, and requests under way. */
  stats(): { readonly sockets: number; readonly active: number } {
    return this.#incarnations.stats();
  }

  /** Breaks everything that is under way. */
  close(): void {
    this.#incarnations.close();
  }

  #serve(
    kind: 'http' | 'upgraded',
    request: IncomingMessage,
    client: Duplex,
    route: SandboxRoute,
    forward: (passage: Passage) => void,
    refuse: (error: AenvError) => void,
  ): void {
    const { directory, config, log, clock } = this.#options;
    const startedAt = clock.now();
    let begun = false;
    const done: Passage['done'] = (outcome) => {
      if (begun) this.#metrics.end(kind);
      this.#metrics.count(outcome);
      log.debug('proxied', {
        sandboxId: route.sandboxId,
        port: route.port,
        method: request.method,
        outcome: labelOf(outcome),
        ...(outcome.kind === 'refused' && outcome.error.cause !== undefined ? { cause: outcome.error.cause } : {}),
        ms: clock.now() - startedAt,
      });
    };
    try {
      const wake = wakeOf(directory, route, request.headers);
      if (wake !== undefined) {
        // Nobody else listens to a connection that was handed over for an upgrade.
        const unheard = () => {};
        client.on('error', unheard);
        wake()
          .finally(() => client.off('error', unheard))
          .then(
            () => {
              if (client.destroyed) done({ kind: 'client_gone' });
              else this.#serve(kind, request, client, route, forward, refuse);
            },
            (error: unknown) => {
              const isGone = directory.lookup(route.sandboxId).kind === 'unknown';
              const known = isGone ? sandboxGone(route.sandboxId) : AenvError.from(error);
              done({ kind: 'refused', error: known });
              refuse(known);
            },
          );
        return;
      }
      const target = admit(directory, route, request.headers);
      const incarnation = this.#incarnations.of(target);
      if (incarnation === undefined) throw sandboxGone(route.sandboxId);
      begun = true;
      this.#metrics.begin(kind);
      forward({ request, route, target, incarnation, config, bytes: this.#bytes, done });
    } catch (error) {
      const known = AenvError.from(error);
      if (known.code === 'internal') log.error('request to a sandbox failed', { error });
      done({ kind: 'refused', error: known });
      refuse(known);
    }
  }
}

/**
 * How traffic brings the sandbox back, where it is to do so. What may not come in wakes nobody.
 * @throws AenvError `route_not_found`, `forbidden`
 */
function wakeOf(
  directory: RouteDirectory,
  route: SandboxRoute,
  headers: IncomingHttpHeaders,
): (() => Promise<void>) | undefined {
  const found = directory.lookup(route.sandboxId);
  if (found.kind !== 'unavailable' || found.wake === undefined) return undefined;
  requireAccess(route, found, headers);
  return found.wake;
}
