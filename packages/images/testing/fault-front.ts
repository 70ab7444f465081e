import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What came in, as a test looks at it. */
export interface Seen {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
}

/** One request that a rule may answer in its own way. */
export interface Exchange extends Seen {
  readonly response: ServerResponse;
  /** how many requests for the same method and path came before */
  readonly earlier: number;
  readonly body: string;
  reply(status: number, headers?: Readonly<Record<string, string>>, body?: string | Buffer): void;
  /** Answers with what is behind, with faults. */
  relay(faults?: Faults): Promise<void>;
}

export interface Faults {
  /** the connection is cut after so many bytes of the body */
  readonly cutAfter?: number;
  /** the body comes in pieces of `pieceBytes` with pauses between */
  readonly pauseMs?: number;
  readonly pieceBytes?: number;
  readonly change?: (body: Buffer) => Buffer;
  /** the Range header is not passed on */
  readonly ignoreRange?: boolean;
}

/** Answers a request, or leaves it to be relayed. */
export type Rule = (exchange: Exchange) => void | Promise<void>;

export interface FrontOptions {
  /** `http://127.0.0.1:PORT` */
  readonly upstream: string;
  readonly address?: string;
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
}

/** An HTTP server before a registry that injects faults. What its rule does not answer is relayed. */
export class FaultFront {
  readonly seen: Seen[] = [];
  rule: Rule = () => {};
  readonly #server: Server;
  readonly #options: FrontOptions;

  private constructor(options: FrontOptions) {
    this.#options = options;
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      this.#handle(request, response).catch(() => response.destroy());
    };
    this.#server = options.tls === undefined ? createServer(listener) : createTlsServer(options.tls, listener);
    // What a test cuts off fails here too.
    this.#server.on('clientError', (_, socket) => socket.destroy());
  }

  static async start(options: FrontOptions): Promise<FaultFront> {
    const front = new FaultFront(options);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    front.#server.once('error', reject);
    front.#server.listen(0, options.address ?? '127.0.0.1', resolve);
    await promise;
    return front;
  }

  get host(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `${address}:${port}`;
  }

  get base(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://${this.host}`;
  }

  /** Requests whose path matches. */
  matching(path: RegExp): readonly Seen[] {
    return this.seen.filter(({ url }) => path.test(url.pathname));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const seen: Seen = {
      method: request.method ?? '',
      url: new URL(request.url ?? '', this.base),
      headers: request.headers,
    };
    const same = (one: Seen) => one.method === seen.method && one.url.pathname === seen.url.pathname;
    const earlier = this.seen.filter(same).length;
    this.seen.push(seen);
    let answered = false;
    const exchange: Exchange = {
      ...seen,
      response,
      earlier,
      body: Buffer.concat(chunks).toString('utf8'),
      reply: (status, headers = {}, body = '') => {
        answered = true;
        response.writeHead(status, headers).end(body);
      },
      relay: (faults = {}) => {
        answered = true;
        return this.#relay(seen, response, faults);
      },
    };
    await this.rule(exchange);
    if (!answered && !response.writableEnded && !response.destroyed) await exchange.relay();
  }

  async #relay(seen: Seen, response: ServerResponse, faults: Faults): Promise<void> {
    const headers: Record<string, string> = {};
    for (const name of ['accept', 'range']) {
      const value = seen.headers[name];
      if (typeof value === 'string' && !(name === 'range' && faults.ignoreRange === true)) headers[name] = value;
    }
    const answer = await fetch(new URL(seen.url.pathname + seen.url.search, this.#options.upstream), {
      method: seen.method,
      headers,
      redirect: 'manual',
    });
    let body: Buffer<ArrayBufferLike> = Buffer.from(await answer.arrayBuffer());
    if (faults.change !== undefined) body = faults.change(body);
    const kept = ['content-type', 'content-range', 'docker-content-digest', 'accept-ranges'];
    const out = Object.fromEntries(
      kept.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name) ?? '']] : [])),
    );
    response.writeHead(answer.status, { ...out, 'content-length': String(body.length) });
    await send(response, body, faults);
  }
}

async function send(response: ServerResponse, body: Buffer, faults: Faults): Promise<void> {
  const { cutAfter, pauseMs, pieceBytes = 16 * 1024 } = faults;
  const sent = cutAfter === undefined ? body : body.subarray(0, cutAfter);
  if (pauseMs === undefined) {
    await new Promise<void>((resolve) => response.write(sent, () => resolve()));
  } else {
    for (let at = 0; at < sent.length && !response.destroyed; at += pieceBytes) {
      response.write(sent.subarray(at, at + pieceBytes));
      await delay(pauseMs);
    }
  }
  if (cutAfter !== undefined && cutAfter < body.length) response.destroy();
  else response.end();
}
