import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: string[];
  readonly trailers: NodeJS.Dict<string>;
  readonly body: Buffer;
  /** the body as JSON */
  json(): Record<string, unknown>;
}

/** Sends one request, reads all of the answer; rejects when it breaks off. No connection is kept. */
export function ask(url: string, options: RequestOptions & { readonly body?: string | Buffer } = {}): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const { body, ...rest } = options;
  const outgoing = request(url, { agent: false, signal: AbortSignal.timeout(30_000), ...rest }, (answer) => {
    const chunks: Buffer[] = [];
    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
    answer.on('error', reject);
    answer.on('end', () => {
      const all = Buffer.concat(chunks);
      resolve({
        status: answer.statusCode ?? 0,
        headers: answer.headers,
        rawHeaders: answer.rawHeaders,
        trailers: answer.trailers,
        body: all,
        json: () => JSON.parse(all.toString()) as Record<string, unknown>,
      });
    });
  });
  outgoing.on('error', reject);
  outgoing.end(body);
  return promise;
}

/** The E2B routing headers. */
export function to(sandboxId: string, port: number): Record<string, string> {
  return { 'e2b-sandbox-id': sandboxId, 'e2b-sandbox-port': String(port) };
}

export interface RawReply {
  readonly text: string;
  /** how the connection ended: `fin`, an error's code, or `timeout` when it did not within 20 s */
  readonly end: string;
}

/** Opens a bare connection to the server of a URL. */
export async function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** Writes bytes on a bare connection and reads until it ends. */
export async function exchangeRaw(url: string, text: string | Buffer): Promise<RawReply> {
  const socket = await openSocket(url);
  socket.write(text, 'latin1');
  return await readToEnd(socket);
}

export function readToEnd(socket: Socket): Promise<RawReply> {
  const { promise, resolve } = Promise.withResolvers<RawReply>();
  const chunks: Buffer[] = [];
  const textOf = () => Buffer.concat(chunks).toString('latin1');
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', (error: NodeJS.ErrnoException) => resolve({ text: textOf(), end: error.code ?? error.message }));
  const timer = setTimeout(() => {
    resolve({ text: textOf(), end: 'timeout' });
    socket.destroy();
  }, 20_000);
  socket.on('close', () => {
    clearTimeout(timer);
    resolve({ text: textOf(), end: 'fin' });
  });
  return promise;
}

/** Waits until a condition holds. @throws after `ms` */
export async function eventually(condition: () => boolean, what: string, ms = 20_000): Promise<void> {
  const deadline = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
