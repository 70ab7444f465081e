import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP, type LookupFunction } from 'node:net';
import { createSecureContext, getCACertificates } from 'node:tls';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { Agent, buildConnector, request } from 'undici';
import { type Depth, deepest, depthOf, isWithin } from './addresses.ts';
import { requestFailure } from './failures.ts';

/** A rest up to this size is read away. */
const DISCARD_BYTES = 16 * 1024;

/** What a registry, and the hosts that it leads to, are trusted with. */
export interface Reach {
  /** certificates are not looked at */
  readonly insecure: boolean;
  /** path of a PEM file with authorities, beside those of the system */
  readonly authority: string | undefined;
  /** how far inside an address may be */
  readonly limit: Depth;
}

export interface HttpRequest {
  readonly url: URL;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface HttpResponse {
  readonly url: URL;
  readonly status: number;
  /** the first of several values; undefined when absent */
  header(name: string): string | undefined;
  headers(name: string): readonly string[];
  /** The content, once. Throws `registry_unavailable` when it ends early. */
  chunks(): AsyncGenerator<Buffer>;
  /** Lets go of an answer that is not read, or not read to its end. */
  discard(): void;
}

export interface TransportOptions {
  /** limit of `ms` to connect */
  readonly connectMs?: number;
  /** limit of `ms` without a sign of life, before the answer and in the middle of it */
  readonly stallMs?: number;
  /** connections to one host */
  readonly connections?: number;
  readonly resolve?: (host: string) => Promise<readonly LookupAddress[]>;
}

/** Sends single HTTP requests: no redirects, no retries. Connections are kept and shared by equal `Reach`. */
export class Transport {
  readonly #options: Required<TransportOptions>;
  readonly #agents = new Map<string, Promise<Agent>>();

  constructor(options: TransportOptions = {}) {
    this.#options = {
      connectMs: 10_000,
      stallMs: 30_000,
      connections: 16,
      resolve: (host) => lookup(host, { all: true }),
      ...options,
    };
  }

  /**
   * How far inside a host is, by the deepest of its addresses.
   * @throws AenvError `registry_unavailable` when the name has no address
   */
  async depthOf(hostname: string): Promise<Depth> {
    const literal = unbracketed(hostname);
    if (isIP(literal) !== 0) return depthOf(literal);
    try {
      return deepest((await this.#options.resolve(hostname)).map(({ address }) => depthOf(address)));
    } catch (error) {
      throw requestFailure(hostname, error);
    }
  }

  /**
   * @throws AenvError `registry_unavailable`, `registry_untrusted`, `registry_address_refused`; the signal's reason
   */
  async send(call: HttpRequest, reach: Reach): Promise<HttpResponse> {
    const { url, signal } = call;
    const literal = unbracketed(url.hostname);
    if (isIP(literal) !== 0 && !isWithin(depthOf(literal), reach.limit)) throw refused(url.host);
    try {
      signal?.throwIfAborted();
      const response = await request(url, {
        dispatcher: await this.#agent(reach),
        method: call.method ?? 'GET',
        // A transfer encoding would change what digests and ranges are about.
        headers: { 'user-agent': 'aenv', 'accept-encoding': 'identity', ...call.headers },
        headersTimeout: this.#options.stallMs,
        bodyTimeout: this.#options.stallMs,
        ...(call.body === undefined ? {} : { body: call.body }),
        ...(signal === undefined ? {} : { signal }),
      });
      const headers = (name: string): readonly string[] => {
        const value = response.headers[name];
        return value === undefined ? [] : typeof value === 'string' ? [value] : value;
      };
      // An answer that nobody reads may fail any time later.
      response.body.on('error', () => {});
      return {
        url,
        status: response.statusCode,
        headers,
        header: (name) => headers(name)[0],
        chunks: () => chunksOf(url.host, response.body, signal),
        // Reading a short rest keeps the connection.
        discard: () => void response.body.dump({ limit: DISCARD_BYTES }).catch(() => {}),
      };
    } catch (error) {
      signal?.throwIfAborted();
      throw requestFailure(url.host, error);
    }
  }

  async close(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    for (const agent of await Promise.allSettled(agents)) {
      if (agent.status === 'fulfilled') await agent.value.destroy();
    }
  }

  #agent(reach: Reach): Promise<Agent> {
    const key = JSON.stringify([reach.insecure, reach.authority ?? null, reach.limit]);
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const made = this.#makeAgent(reach);
    this.#agents.set(key, made);
    // A file that could not be read may be there the next time.
    made.catch(() => this.#agents.delete(key));
    return made;
  }

  async #makeAgent(reach: Reach): Promise<Agent> {
    const { connectMs, connections } = this.#options;
    const authority = reach.authority === undefined ? undefined : await readAuthority(reach.authority);
    const common = { timeout: connectMs, lookup: this.#guardedLookup(reach.limit) };
    const plain = buildConnector(common);
    let secure: ReturnType<typeof buildConnector> | undefined;
    return new Agent({
      connections,
      pipelining: 1,
      connect: (options, callback) => {
        if (options.protocol !== 'https:') return plain(options, callback);
        // Reading all authorities takes a while: once, and only when TLS is spoken.
        secure ??= buildConnector(
          reach.insecure
            ? { ...common, rejectUnauthorized: false }
            : { ...common, secureContext: createSecureContext({ ca: authorities(authority) }) },
        );
        secure(options, callback);
      },
    });
  }

  /** Addresses beyond the limit are not connected to, whatever a name had when it was asked for before. */
  #guardedLookup(limit: Depth): LookupFunction {
    return (hostname, options, callback) => {
      this.#options.resolve(hostname).then(
        (all) => {
          const within = all.filter(({ address }) => isWithin(depthOf(address), limit));
          const [first] = within;
          if (first === undefined) callback(refused(hostname), '', 0);
          else if (options.all === true) callback(null, within.slice());
          else callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, '', 0),
      );
    };
  }
}

async function* chunksOf(
  host: string,
  body: AsyncIterable<Buffer> & { destroy(): unknown },
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    signal?.throwIfAborted();
    throw requestFailure(host, error);
  } finally {
    body.destroy();
  }
}

/** Those that Node brings, those that the administrator has added to the system, and one more. */
function authorities(own: string | undefined): string[] {
  return [...getCACertificates('default'), ...getCACertificates('system'), ...(own === undefined ? [] : [own])];
}

async function readAuthority(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new AenvError('config_invalid', `configuration: registry.ca: ${path} cannot be read`, { cause: error });
  }
}

function unbracketed(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function refused(host: string): AenvError {
  return new AenvError('registry_address_refused', `${host}: requests to this address are refused`);
}
