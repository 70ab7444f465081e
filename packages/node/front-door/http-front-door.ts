import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Gauge } from '@aenv/platform/observability/metrics.ts';
import type { CertificateSource } from '../certificates/source.ts';
import { answerError, errorAnswer } from '../proxy/answers/answer.ts';
import { writeRawAnswer } from '../proxy/answers/raw-answer.ts';
import { requestFraming } from '../proxy/headers/framing.ts';
import { SandboxProxy } from '../proxy/proxy.ts';
import { decideRoute, type Route } from '../proxy/routing/route.ts';
import { answerClientError, connectRefused } from './client-error.ts';
import { FRONT_DOOR_DEFAULTS, type FrontDoorConfig } from './config.ts';
import type { FrontDoor, FrontDoorOptions, FrontDoorStats } from './contract.ts';
import { guardBody } from './guard-body.ts';
import { createHttpServer, routed } from './http-server.ts';
import { type ListenAddress, listenOn } from './listen.ts';
import { TlsDoor } from './tls/tls-door.ts';

/** The front door over `node:http`; what it does is told at `createFrontDoor`. */
export class HttpFrontDoor implements FrontDoor {
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
  #tls: TlsDoor | undefined;
  /** open connections: plain ones, and those with TLS */
  readonly #connections = { plain: 0, tls: 0 };
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

  async listenTls(address: ListenAddress, certificate: CertificateSource): Promise<{ readonly url: string }> {
    const tls = new TlsDoor({
      certificate,
      config: this.#config,
      log: this.#log,
      // Announced as Node's HTTPS server announces them, which takes any stream; only the declaration knows sockets alone.
      accept: (connection) => this.#server.emit('connection', connection as Socket),
      onCount: (open) => this.#count('tls', open),
    });
    this.#tls = tls;
    return { url: await tls.listen(address) };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  stats(): FrontDoorStats {
    const { sockets, active } = this.#proxy.stats();
    const { plain, tls } = this.#connections;
    return { clients: plain + tls, sandboxSockets: sockets, sandboxRequests: active };
  }

  #createServer(): Server {
    const config = this.#config;
    const server = createHttpServer(config);
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
    // TLS connections, and what HTTP/2 makes of them, are counted where they come in.
    const isPlain = socket instanceof Socket && !(socket instanceof TLSSocket);
    if (isPlain) this.#count('plain', this.#connections.plain + 1);
    socket.once('close', () => {
      this.#clients.delete(socket);
      if (isPlain) this.#count('plain', this.#connections.plain - 1);
    });
  }

  #count(kind: 'plain' | 'tls', open: number): void {
    this.#connections[kind] = open;
    this.#open.set(this.#connections.plain + this.#connections.tls);
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
    writeRawAnswer(socket, errorAnswer(connectRefused(), request), this.#config.drainMs);
  }

  async #close(): Promise<void> {
    const { promise: stopped, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    const tlsStopped = this.#tls?.close();
    const underWay = [...this.#clients.values()].flatMap((responses) => [...responses]);
    for (const response of underWay) {
      if (!response.headersSent) response.shouldKeepAlive = false;
    }
    this.#server.closeIdleConnections();
    const giveUp = setTimeout(() => this.#breakAll(), this.#config.closeGraceMs);
    // Upgraded connections end by themselves only by chance, so nobody waits for them alone.
    if (underWay.length === 0) this.#breakAll();
    await Promise.all([stopped, tlsStopped]);
    clearTimeout(giveUp);
    this.#breakAll();
    await Promise.all([...this.#clients.keys()].map((socket) => new Promise((gone) => socket.once('close', gone))));
  }

  #breakAll(): void {
    this.#proxy.close();
    this.#server.closeAllConnections();
    this.#tls?.breakAll();
    for (const socket of this.#clients.keys()) socket.destroy();
  }
}
