import { randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { BOOT_ID_HEADER, HOST_SECRET_HEADER, type InitRequest, TUNNEL_HOST } from '@aenv/contracts/envd/host-api.ts';
import type { ConnectionHandler } from './fake-ports.ts';

const MAX_BODY = 1024 * 1024;

/** What of a fake guest is in its memory. */
export interface FakeMemory {
  readonly bootId: string;
  readonly secret?: string;
}

/**
 * As much of envd as the host needs to bring a sandbox up: /health, /init with the rules of its secret, and the tunnel
 * to the guest's loopback.
 */
export class FakeEnvd {
  /** another one for each boot, the same after a restore */
  readonly bootId: string;
  /** bodies of all accepted POST /init, oldest first */
  readonly inits: InitRequest[] = [];
  /** programs of the guest that listen on 127.0.0.1 only, by port */
  readonly loopback = new Map<number, ConnectionHandler>();
  /** answers what is neither /health nor /init; 404 by default */
  onRequest: RequestListener = (_request, response) => void response.writeHead(404).end();
  #secret: string | undefined;
  readonly #server: Server;

  constructor(version: string, memory?: FakeMemory) {
    this.bootId = memory?.bootId ?? randomUUID();
    this.#secret = memory?.secret;
    this.#server = createServer((request, response) => {
      const path = request.url?.split('?')[0];
      if (path === '/health') response.writeHead(204).end();
      else if (path === '/init' && request.method === 'POST') void this.#init(request, response, version);
      else this.onRequest(request, response);
    });
    this.#server.on('connect', (request, stream: Duplex, head: Buffer) => this.#tunnel(request, stream, head));
  }

  /** What a capture keeps of it. */
  get memory(): FakeMemory {
    return { bootId: this.bootId, ...(this.#secret === undefined ? {} : { secret: this.#secret }) };
  }

  /** the host secret, once it is set */
  get secret(): string | undefined {
    return this.#secret;
  }

  handle(stream: Duplex): void {
    this.#server.emit('connection', stream);
  }

  async #init(request: IncomingMessage, response: ServerResponse, version: string): Promise<void> {
    const secret = header(request);
    if (secret === undefined || (this.#secret !== undefined && !same(secret, this.#secret))) {
      response.writeHead(401).end();
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    let asked: InitRequest;
    try {
      for await (const chunk of request) {
        size += chunk.length;
        if (size > MAX_BODY) throw new Error('too large');
        chunks.push(chunk);
      }
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      if (typeof body !== 'object' || body === null) throw new Error('no object');
      asked = body;
      this.inits.push(asked);
    } catch {
      response.writeHead(400).end();
      return;
    }
    this.#secret = asked.hostSecret ?? secret;
    response.writeHead(204, { 'x-envd-version': version, [BOOT_ID_HEADER]: this.bootId }).end();
  }

  #tunnel(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    stream.on('error', () => stream.destroy());
    const secret = header(request);
    if (secret === undefined || this.#secret === undefined || !same(secret, this.#secret)) {
      stream.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
      return;
    }
    const [host, port] = (request.url ?? '').split(':');
    const handler = host === TUNNEL_HOST ? this.loopback.get(Number(port)) : undefined;
    if (handler === undefined) {
      stream.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      return;
    }
    stream.write('HTTP/1.1 200 OK\r\n\r\n');
    if (head.length > 0) stream.unshift(head);
    handler(stream);
  }
}

/** A program of the guest that passes bytes on to a server of the test, for example one on a free port. */
export function forwardTo(port: number, host = '127.0.0.1'): ConnectionHandler {
  return (stream) => {
    const upstream = connect(port, host);
    upstream.on('error', () => stream.destroy());
    stream.on('error', () => upstream.destroy());
    stream.on('close', () => upstream.destroy());
    upstream.on('close', () => stream.destroy());
    stream.pipe(upstream).pipe(stream);
  };
}

function header(request: IncomingMessage): string | undefined {
  const value = request.headers[HOST_SECRET_HEADER];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function same(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
