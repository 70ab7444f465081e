import { randomInt } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net';
import { HOST_SECRET_HEADER } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { RouteDirectory, RouteLookup, RouteTarget } from '../contract.ts';

/** An address of the loopback network that stands for a guest; distinct for each call, in all test processes. */
export function freshAddress(): string {
  return `127.88.${randomInt(1, 255)}.${randomInt(1, 255)}`;
}

export interface Listening {
  readonly port: number;
  /** connections seen so far, open and closed */
  readonly accepted: () => number;
  readonly open: () => number;
  close(): Promise<void>;
}

/** Listens on an address and counts connections; `close()` breaks those that are left. */
export async function listenAt(server: Server | NetServer, address: string, port = 0): Promise<Listening> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on('connection', (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, resolve);
  });
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    accepted: () => accepted,
    open: () => sockets.size,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A server in a guest, on any port unless one is given. */
export function httpGuest(address: string, listener: RequestListener, port = 0): Promise<Listening> {
  return listenAt(createServer({ requestTimeout: 0 }, listener), address, port);
}

/** A server that handles bare connections, for what an HTTP library would hide. */
export function rawGuest(address: string, onSocket: (socket: Socket) => void, port = 0): Promise<Listening> {
  return listenAt(createNetServer({ allowHalfOpen: true }, onSocket), address, port);
}

/** Stands for envd: answers requests by `listener` and tunnels CONNECT to 127.0.0.1 as envd does. */
export function envdGuest(address: string, hostSecret: string, listener: RequestListener): Promise<Listening> {
  const server = createServer(listener);
  server.on('connect', (request, socket) => {
    socket.on('error', () => {});
    if (request.headers[HOST_SECRET_HEADER] !== hostSecret) {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const port = Number((request.url ?? '').split(':')[1]);
    const inner = connect({ host: '127.0.0.1', port });
    let open = false;
    inner.once('connect', () => {
      open = true;
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(inner).pipe(socket);
    });
    inner.on('error', () => {
      if (open) socket.destroy();
      else socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n');
    });
    inner.once('close', () => socket.destroy());
    socket.once('close', () => inner.destroy());
  });
  return listenAt(server, address, ENVD_PORT);
}

/** A directory that the test writes. */
export class FakeDirectory implements RouteDirectory {
  readonly #sandboxes = new Map<string, RouteLookup>();
  readonly #listeners = new Set<(incarnation: string) => void>();
  #count = 0;

  /** Makes a sandbox serve, as a new incarnation. */
  run(sandboxId: string, address: string, more: Partial<RouteTarget> = {}): RouteTarget {
    const target: RouteTarget = {
      sandboxId,
      incarnation: `run-${++this.#count}`,
      address,
      hostSecret: 'host-secret',
      httpsPorts: [],
      ...more,
    };
    this.#sandboxes.set(sandboxId, { kind: 'running', target });
    return target;
  }

  /** Puts a sandbox to sleep: traffic calls `wake`. */
  sleep(sandboxId: string, wake: () => Promise<void>, trafficAccessToken?: string): void {
    const access = trafficAccessToken === undefined ? {} : { trafficAccessToken };
    this.#sandboxes.set(sandboxId, { kind: 'unavailable', state: 'paused', wake, ...access });
  }

  /** Ends a sandbox; afterwards it is unknown, or in the state given. */
  end(sandboxId: string, state?: string): void {
    const found = this.#sandboxes.get(sandboxId);
    if (state === undefined) this.#sandboxes.delete(sandboxId);
    else this.#sandboxes.set(sandboxId, { kind: 'unavailable', state });
    if (found?.kind === 'running') this.announceEnd(found.target.incarnation);
  }

  announceEnd(incarnation: string): void {
    for (const listener of this.#listeners) listener(incarnation);
  }

  lookup(sandboxId: string): RouteLookup {
    return this.#sandboxes.get(sandboxId) ?? { kind: 'unknown' };
  }

  onEnd(listener: (incarnation: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get subscribers(): number {
    return this.#listeners.size;
  }
}
