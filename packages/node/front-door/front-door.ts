import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Clock, systemClock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Gauge, Metrics } from '@aenv/platform/observability/metrics.ts';
import { answerError, errorAnswer } from '../proxy/answers/answer.ts';
import { writeRawAnswer } from '../proxy/answers/raw-answer.ts';
import type { RouteDirectory } from '../proxy/contract.ts';
import { requestFraming } from '../proxy/headers/framing.ts';
import { SandboxProxy } from '../proxy/proxy.ts';
import { decideRoute, type Route } from '../proxy/routing/route.ts';
import { answerClientError } from './client-error.ts';
import { FRONT_DOOR_DEFAULTS, type FrontDoorConfig } from './config.ts';
import { guardBody } from './guard-body.ts';
import { type ListenAddress, listenOn } from './listen.ts';

export interface FrontDoorOptions {
  readonly directory: RouteDirectory;
  /** the daemon's own routes */
  readonly control: RequestListener;
  /** what differs from `FRONT_DOOR_DEFAULTS` */
  readonly config?: Partial<FrontDoorConfig>;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
}

export interface FrontDoor {
  /** @throws AenvError `port_in_use`, `config_invalid` for an address that this host does not have */
  listen(address: ListenAddress): Promise<{ readonly url: string }>;
  /** Stops accepting, gives requests under way a short time, then breaks what is left. Idempotent. */
  close(): Promise<void>;
  /** open connections, for leak checks and metrics */
  stats(): FrontDoorStats;
}

export interface FrontDoorStats {
  readonly clients: number;
  readonly sandboxSockets: number;
  readonly sandboxRequests: number;
}

/**
 * The one HTTP server of the daemon. Every request is routed on its own, in this order:
 *
 * | The request has                                         | It goes to                                             |
 * | ------------------------------------------------------- | ------------------------------------------------------ |
 * | host label `PORT-SANDBOXID.anything` (any case)         | that port, path kept                                   |
 * | `e2b-sandbox-id` + `e2b-sandbox-port`, or               | that port, path kept, `/health` and `/metrics` too;    |
 * | `x-agentenv-sandbox-id` + `x-agentenv-target-port`      | a leading `/proxy` is stripped                         |
 * | path `/proxy` or `/proxy/…` and no routing headers      | 400 `bad_route`                                        |
 * | anything else                                           | the daemon's own routes                                |
 *
 * A host without a dot, an IP literal, and a first label that does not begin with a number and a dash name no sandbox.
 * `PORT-ID-CLIENT.domain` is read as `PORT-ID.domain`. The host label stands above the headers.
 *
 * What the platform itself answers on the data plane, as JSON `{code, message, error_code, remediation, …}` (a page for
 * a browser that navigates), with `Access-Control-Allow-Origin: *`:
 *
 * | Status | error_code             | When                                                                          |
 * | ------ | ---------------------- | ----------------------------------------------------------------------------- |
 * | 400    | `bad_route`            | malformed label, half a header pair, bad port or id, no or two Host hdrs      |
 * | 400    | `invalid_request`      | a request that is not HTTP, or a transfer coding other than chunked           |
 * | 403    | `forbidden`            | private sandbox, `e2b-traffic-access-token` wrong or missing (not envd's port)|
 * | 404    | `route_not_found`      | host-only path of envd, or an unusual spelling of a path on envd's port       |
 * | 405    | `method_not_allowed`   | CONNECT                                                                       |
 * | 408    | `request_timeout`      | header lines (or a control-plane body) that do not arrive in time             |
 * | 429    | `too_many_connections` | the sandbox has its maximum of requests and upgraded connections under way    |
 * | 431    | `headers_too_large`    | header lines above the limit                                                  |
 * | 502    | `sandbox_gone`         | unknown or ended sandbox, one in another state (named), one that ended meanwhile |
 * | 502    | `port_not_open`        | nothing listens on the port, on any address of the guest, for about a second  |
 * | 502    | `upstream_failed`      | the server broke the connection before an answer, or answered no valid HTTP   |
 * | 504    | `upstream_timeout`     | no connection within the connect timeout                                      |
 *
 * Everything else comes from the server in the sandbox and is passed on as it is, redirects included. An answer that
 * ends short, and every stream of a sandbox that ends, is broken off with a TCP reset, never ended cleanly.
 */
export function createFrontDoor(options: FrontDoorOptions): FrontDoor {
  return new HttpFrontDoor(options);
}

class HttpFrontDoor implements FrontDoor {
  readonly #control: RequestListener;
  readonly #config: FrontDoorConfig;
  readonly #log: Logger;
  readonly #proxy: SandboxProxy;
  readonly #server: Server;
  /** open client connections with the answers under way on each */
  readonly #clients = new Map<Duplex, Set<ServerResponse>>();
  /** connections that were told of an error and must bring no further request */
  readonly #doomed = new WeakSet<Duplex>();
  readonly #open: Gauge;
  #closing: Promise<void> | undefined;

  constructor({ directory, control, config, log, metrics, clock = systemClock }: FrontDoorOptions) {
    this.#control = control;
    this.#config = { ...FRONT_DOOR_DEFAULTS, ...config };
    this.#log = log;
    this.#proxy = new SandboxProxy({ directory, config: this.#config, clock, log, metrics });
    this.#open = metrics.gauge('aenv_http_connections', 'Open client connections.');
    this.#open.set(0);
    this.#server = this.#createServer();
  }

  async listen(address: ListenAddress): Promise<{ readonly url: string }> {
    return { url: await listenOn(this.#server, address) };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  stats(): FrontDoorStats {
    const { sockets, active } = this.#proxy.stats();
    return { clients: this.#clients.size, sandboxSockets: sockets, sandboxRequests: active };
  }

  #createServer(): Server {
    const config = this.#config;
    const server = createServer({
      // Uploads into sandboxes take as long as they take; bodies of the control plane are guarded one by one.
      requestTimeout: 0,
      headersTimeout: config.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, config.headersTimeoutMs),
      keepAliveTimeout: config.keepAliveTimeoutMs,
      maxHeaderSize: config.maxClientHeaderBytes,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      // The router refuses a missing Host itself, as JSON.
      requireHostHeader: false,
      shouldUpgradeCallback: (request) => isUpgrade(request) && decideRoute(routed(request)).kind === 'sandbox',
    });
    server.timeout = 0;
    server.maxConnections = config.maxConnections;
    // A limit by number drops fields silently; they are bounded by their size.
    server.maxHeadersCount = 0;
    server.on('error', (error) => {
      if (server.listening) this.#log.error('HTTP server failed', { error });
    });
    server.on('connection', (socket) => this.#onConnection(socket));
    server.on('request', (request, response) => this.#onRequest(request, response));
    server.on('checkContinue', (request, response) => this.#onRequest(request, response, 'continue'));
    server.on('checkExpectation', (request, response) => this.#onRequest(request, response, 'other'));
    server.on('upgrade', (request, socket, head) => this.#onUpgrade(request, socket, head));
    server.on('connect', (request, socket) => this.#onConnect(request, socket));
    server.on('clientError', (error, socket) => this.#onClientError(error, socket));
    return server;
  }

  #onConnection(socket: Socket): void {
    // Each pipelined request listens for the end of the connection.
    socket.setMaxListeners(0);
    this.#clients.set(socket, new Set());
    this.#open.set(this.#clients.size);
    socket.once('close', () => {
      this.#clients.delete(socket);
      this.#open.set(this.#clients.size);
    });
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, expectation?: 'continue' | 'other'): void {
    if (this.#doomed.has(request.socket)) return;
    const underWay = this.#clients.get(request.socket);
    underWay?.add(response);
    response.once('finish', () => {
      underWay?.delete(response);
      if (this.#closing !== undefined) this.#server.closeIdleConnections();
    });
    // A write that comes after the client has gone is no fault of anybody.
    response.on('error', () => {});
    if (this.#closing !== undefined) response.shouldKeepAlive = false;

    const route = decideRoute(routed(request));
    if (route.kind === 'sandbox') this.#proxy.request(request, response, route);
    else if (route.kind === 'refused') answerError(request, response, route.error, this.#config.drainMs);
    else this.#serveControl(request, response, route, expectation);
  }

  #serveControl(
    request: IncomingMessage,
    response: ServerResponse,
    route: Extract<Route, { kind: 'control' }>,
    expectation: 'continue' | 'other' | undefined,
  ): void {
    request.url = route.path;
    if (expectation === 'other') {
      const error = new AenvError('invalid_request', `The expectation '${request.headers.expect}' cannot be met.`);
      answerError(request, response, error, this.#config.drainMs);
      return;
    }
    if (expectation === 'continue') response.writeContinue();
    if (requestFraming(request.headers) !== 'none') guardBody(request, response, this.#config);
    try {
      this.#control(request, response);
    } catch (error) {
      this.#log.error('control-plane request failed', { error });
      if (response.headersSent) request.socket.destroy();
      else answerError(request, response, AenvError.from(error), this.#config.drainMs);
    }
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const route = decideRoute(routed(request));
    if (route.kind === 'sandbox') {
      this.#proxy.upgrade(request, socket, head, route);
      return;
    }
    const error = new AenvError('route_not_found', 'The daemon itself serves no upgraded connections.');
    writeRawAnswer(socket, errorAnswer(error, request), this.#config.drainMs);
  }

  #onClientError(error: Error, socket: Duplex): void {
    const underWay = [...(this.#clients.get(socket) ?? [])];
    // Beside an answer that has begun, or before one that has to come first, nothing can be said.
    const unspeakable = underWay.length > 1 || underWay.some((response) => response.headersSent);
    if (unspeakable || this.#doomed.has(socket)) {
      socket.destroy();
      return;
    }
    this.#doomed.add(socket);
    answerClientError(error, socket, this.#config.drainMs);
  }

  #onConnect(request: IncomingMessage, socket: Duplex): void {
    const error = new AenvError('method_not_allowed', 'CONNECT is not served.', {
      remediation: 'Send plain requests; ports of sandboxes are reached by host label or routing headers.',
    });
    writeRawAnswer(socket, errorAnswer(error, request), this.#config.drainMs);
  }

  async #close(): Promise<void> {
    const { promise: stopped, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    const underWay = [...this.#clients.values()].flatMap((responses) => [...responses]);
    for (const response of underWay) {
      if (!response.headersSent) response.shouldKeepAlive = false;
    }
    this.#server.closeIdleConnections();
    const giveUp = setTimeout(() => this.#breakAll(), this.#config.closeGraceMs);
    // Upgraded connections end by themselves only by chance, so nobody waits for them alone.
    if (underWay.length === 0) this.#breakAll();
    await stopped;
    clearTimeout(giveUp);
    this.#breakAll();
    await Promise.all([...this.#clients.keys()].map((socket) => new Promise((gone) => socket.once('close', gone))));
  }

  #breakAll(): void {
    this.#proxy.close();
    this.#server.closeAllConnections();
    for (const socket of this.#clients.keys()) socket.destroy();
  }
}

/**
 * Whether a request really is for another protocol. `h2c` is an offer that may be left unanswered (RFC 9113 §3.1 has
 * withdrawn it), and so is every upgrade of a request with a body or over HTTP/1.0.
 */
function isUpgrade(request: IncomingMessage): boolean {
  const protocol = request.headers.upgrade?.trim().toLowerCase();
  return (
    protocol !== undefined &&
    protocol !== 'h2c' &&
    request.httpVersion === '1.1' &&
    requestFraming(request.headers) === 'none'
  );
}

function routed(request: IncomingMessage) {
  const { httpVersion } = request;
  return { url: request.url ?? '/', httpVersion, headers: request.headers, rawHeaders: request.rawHeaders };
}
