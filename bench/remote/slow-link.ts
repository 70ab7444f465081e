import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface LinkOptions {
  /** `http://127.0.0.1:PORT` */
  readonly upstream: string;
  /** of all connections together */
  readonly bytesPerSecond: number;
  /** before the first byte of each answer */
  readonly latencyMs: number;
}

const TICK_MS = 5;

/** An HTTP server before a registry that is as slow as a network would be. */
export class SlowLink {
  /** Whether parts of blobs are served. */
  servesRanges = true;
  /** Bytes of bodies that were passed on. */
  bytes = 0;
  readonly #server: Server;
  readonly #options: LinkOptions;
  /** when the line is free again, by `performance.now` */
  #freeAt = 0;

  private constructor(options: LinkOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#relay(request, response).catch(() => response.destroy());
    });
  }

  static async start(options: LinkOptions): Promise<SlowLink> {
    const link = new SlowLink(options);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    link.#server.once('error', reject);
    link.#server.listen(0, '127.0.0.1', resolve);
    await promise;
    return link;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { upstream, latencyMs } = this.#options;
    const { accept, range } = request.headers;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    await delay(latencyMs);
    const answer = await fetch(new URL(request.url ?? '/', upstream), {
      method: request.method ?? 'GET',
      headers: {
        ...(accept === undefined ? {} : { accept }),
        ...(range === undefined || !this.servesRanges ? {} : { range }),
      },
      signal: gone.signal,
    });
    const kept = ['content-type', 'content-length', 'content-range', 'docker-content-digest'];
    response.writeHead(
      answer.status,
      Object.fromEntries(
        kept.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name) ?? '']] : [])),
      ),
    );
    for await (const chunk of answer.body ?? []) {
      await this.#pass(chunk.length);
      response.write(chunk);
    }
    response.end();
  }

  async #pass(bytes: number): Promise<void> {
    const now = performance.now();
    this.bytes += bytes;
    this.#freeAt = Math.max(now, this.#freeAt) + (1000 * bytes) / this.#options.bytesPerSecond;
    // Timers are no more exact than this.
    if (this.#freeAt - now > TICK_MS) await delay(this.#freeAt - now);
  }
}
