import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { CertificateSource } from '../../certificates/source.ts';
import type { FrontDoorConfig } from '../config.ts';
import { serveHttp2 } from '../http2/session.ts';
import { type ListenAddress, listenOn } from '../listen.ts';

export interface TlsDoorOptions {
  readonly config: FrontDoorConfig;
  readonly certificate: CertificateSource;
  readonly log: Logger;
  /** takes a connection on which a client speaks HTTP/1.1 */
  readonly accept: (connection: Duplex) => void;
  /** called with the number of open connections when it changes */
  readonly onCount: (open: number) => void;
}

/**
 * The TLS side of the front door, in front of its HTTP/1.1 server: HTTP/2 for clients that ask for it (ALPN), HTTP/1.1
 * for the others. A certificate that changes is used for new connections; open ones stay.
 */
export class TlsDoor {
  readonly #server: Server;
  /** TCP connections, those in their handshake too */
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #forget: () => void;
  #closing = false;

  constructor({ config, certificate, log, accept, onCount }: TlsDoorOptions) {
    const server = createServer({
      ...certificate.current(),
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: config.headersTimeoutMs,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    });
    this.#server = server;
    server.maxConnections = config.maxConnections;
    this.#forget = certificate.onChange((pair) => server.setSecureContext({ ...pair, minVersion: 'TLSv1.2' }));
    server.on('error', (error) => {
      if (server.listening) log.error('TLS server failed', { error });
    });
    // Whoever does not get through the handshake is a scanner or distrusts the certificate, which it tells its user.
    server.on('tlsClientError', (error, socket) => {
      log.debug('TLS handshake failed', { error: error.message });
      socket.destroy();
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      onCount(this.#sockets.size);
      socket.once('close', () => {
        this.#sockets.delete(socket);
        onCount(this.#sockets.size);
      });
    });
    server.on('secureConnection', (socket) => {
      if (socket.destroyed) return;
      if (socket.alpnProtocol === 'h2') this.#serveHttp2(socket, config, accept);
      else accept(socket);
    });
  }

  /** @throws AenvError `port_in_use`, `config_invalid` */
  async listen(address: ListenAddress): Promise<string> {
    return (await listenOn(this.#server, address)).replace(/^http:/, 'https:');
  }

  /** Stops accepting; HTTP/2 connections end when their streams have. Resolves when no connection is left. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#forget();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions) session.close();
    await closed;
  }

  /** Ends every connection at once. */
  breakAll(): void {
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serveHttp2(socket: TLSSocket, config: FrontDoorConfig, accept: (connection: Duplex) => void): void {
    const session = serveHttp2(socket, config, accept);
    this.#sessions.add(session);
    session.once('close', () => this.#sessions.delete(session));
    if (this.#closing) session.close();
  }
}
