import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Gate, GatedStream } from './gated-stream.ts';

/** What a program in a fake guest does with a connection. */
export type ConnectionHandler = (stream: Duplex) => void;

/** The listening ports of one fake guest, on the address of its slot. */
export class FakePorts {
  readonly #address: string;
  readonly #gate: Gate;
  readonly #servers = new Map<number, Server>();
  readonly #sockets = new Set<Socket>();
  #closed = false;

  constructor(address: string, gate: Gate) {
    this.#address = address;
    this.#gate = gate;
  }

  /** Open connections from the host. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** @throws the error of listen(2), for example EADDRINUSE when another VM has the same address */
  async listen(port: number, handler: ConnectionHandler): Promise<void> {
    // Half-open as in the kernel: a client that ended its side still gets its answer.
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      const stream = new GatedStream(socket, this.#gate);
      stream.on('error', () => {});
      this.#gate.pass(() => handler(stream));
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject);
    server.listen(port, this.#address, resolve);
    await promise;
    if (this.#closed) server.close();
    else this.#servers.set(port, server);
  }

  /** Ends one server and its listening socket; its connections stay. */
  async unlisten(port: number): Promise<void> {
    const server = this.#servers.get(port);
    this.#servers.delete(port);
    server?.close();
  }

  /** Ends all servers and connections, as the end of a machine does. */
  async close(): Promise<void> {
    this.#closed = true;
    const closed = [...this.#servers.values()].map((server) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      return promise;
    });
    this.#servers.clear();
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closed);
  }
}
