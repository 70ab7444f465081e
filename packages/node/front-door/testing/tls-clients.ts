import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionRequestOptions,
  connect as connectHttp2,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { CertificateSource } from '../../certificates/source.ts';
import { certificateFolder, DOMAIN } from '../../certificates/testing/certificate-folder.ts';
import { WatchedCertificate } from '../../certificates/watched-certificate.ts';
import { House } from '../../proxy/testing/house.ts';

/** A house whose door speaks TLS too, with a certificate of its own. */
export interface TlsHouse extends AsyncDisposable {
  readonly house: House;
  readonly port: number;
  readonly ca: string;
  readonly certificate: CertificateSource;
  /** folder of cert.pem and key.pem, which the door watches */
  readonly dir: string;
}

export async function openTlsHouse(...options: Parameters<typeof House.open>): Promise<TlsHouse> {
  const { dir, ca } = await certificateFolder();
  const files = { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
  const certificate = await WatchedCertificate.open(files, { log: silentLogger, settleMs: 20 });
  const house = await House.open(...options);
  const { url } = await house.door.listenTls({ host: '127.0.0.1', port: 0 }, certificate);
  return {
    ...{ house, ca, dir, certificate },
    port: Number(new URL(url).port),
    [Symbol.asyncDispose]: async () => {
      await house[Symbol.asyncDispose]();
      await certificate.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

type Target = Pick<TlsHouse, 'port' | 'ca'>;

/** A verified TLS connection that asks for the host's name. */
export async function tlsTo({ port, ca }: Target, host: string, protocol: 'h2' | 'http/1.1'): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port, ca, servername: host, ALPNProtocols: [protocol] });
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** One request over HTTP/1.1. */
export async function askHttp1(
  { port, ca }: Target,
  host: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const outgoing = requestHttps(
    {
      ...{ host: '127.0.0.1', port, ca, path, servername: host, agent: false },
      headers: { host: `${host}:${port}`, ...headers },
      signal: AbortSignal.timeout(20_000),
    },
    (answer) => {
      let body = '';
      answer.on('data', (chunk: Buffer) => {
        body += chunk;
      });
      answer.on('error', reject);
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
    },
  );
  outgoing.on('error', reject);
  outgoing.end();
  return await promise;
}

export interface Http2Reply {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
  readonly interim: number[];
  readonly body: Buffer;
}

/** A client of one HTTP/2 connection. */
export class Http2Client implements Disposable {
  readonly session: ClientHttp2Session;
  readonly #authority: string;

  private constructor(session: ClientHttp2Session, authority: string) {
    this.session = session;
    this.#authority = authority;
    session.on('error', () => {});
  }

  static async open(target: Target, host: string): Promise<Http2Client> {
    const socket = await tlsTo(target, host, 'h2');
    const authority = `${host}:${target.port}`;
    return new Http2Client(
      connectHttp2(`https://${authority}`, { createConnection: () => socket, maxSessionMemory: 1000 }),
      authority,
    );
  }

  /** Begins a request; the caller ends its body. */
  start(headers: OutgoingHttpHeaders, options: ClientSessionRequestOptions = {}): ClientHttp2Stream {
    return this.session.request({ ':authority': this.#authority, ':path': '/', ...headers }, options);
  }

  /** Sends a request and reads all of its answer; rejects when the stream is reset or cut. */
  async ask(headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Http2Reply> {
    const stream = this.start(headers, { endStream: body === undefined });
    const reply = readReply(stream);
    if (body !== undefined) stream.end(body);
    return await reply;
  }

  [Symbol.dispose](): void {
    this.session.destroy();
  }
}

/** An HTTP/2 connection to a server in a sandbox of the house. */
export async function http2ToGuest(
  tls: TlsHouse,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Http2Client> {
  const guest = await tls.house.serve('ia', listener);
  return await Http2Client.open(tls, `${guest.port}-ia.${DOMAIN}`);
}

/** Reads the answer on a stream; rejects when the stream is reset or cut. */
export function readReply(stream: ClientHttp2Stream): Promise<Http2Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Http2Reply>();
  const chunks: Buffer[] = [];
  const interim: number[] = [];
  let head: Record<string, unknown> = {};
  let trailers: Record<string, unknown> = {};
  let ended = false;
  stream.on('headers', (fields) => interim.push(Number(fields[':status'])));
  stream.on('response', (fields) => {
    head = fields;
  });
  stream.on('trailers', (fields) => {
    trailers = fields;
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('end', () => {
    ended = true;
  });
  stream.on('error', reject);
  stream.on('close', () => {
    if (!ended || stream.rstCode !== 0) reject(new Error(`stream closed with ${stream.rstCode}`));
    else resolve({ status: Number(head[':status']), headers: head, trailers, interim, body: Buffer.concat(chunks) });
  });
  return promise;
}
