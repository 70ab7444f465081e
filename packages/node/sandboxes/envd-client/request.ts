import { Agent, type IncomingHttpHeaders, request } from 'node:http';

export interface EnvdRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** bytes as they are, anything else as JSON; a function is asked when the guest has accepted, not earlier */
  readonly body?: unknown;
  /** limit of `ms` for the TCP handshake */
  readonly connectTimeoutMs: number;
  /** limit of `ms` for the whole exchange */
  readonly timeoutMs: number;
  /** limit of the answer's body; 64 KiB when absent */
  readonly maxAnswerBytes?: number;
  readonly signal: AbortSignal;
  /** whose connection it may use and leave open; absent: one of its own */
  readonly agent?: Agent | undefined;
}

export interface EnvdAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A guest that answers more than this is not envd. */
const MAX_ANSWER = 64 * 1024;

/**
 * One connection to a guest, for calls that follow one another: a handshake and a new connection of its server take an
 * emulated guest longer than a call. The next sandbox in the slot has the same address, so whoever opens it ends it.
 */
export class GuestLine implements Disposable {
  readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });

  [Symbol.dispose](): void {
    // A call that nobody waits for any more leaves nothing open either.
    this.agent.maxFreeSockets = 0;
    this.agent.destroy();
  }
}

/**
 * One HTTP exchange with a guest, on a socket of its own that is closed afterwards unless there is a line to it. The short handshake limit matters while a guest boots: a lost SYN is
 * sent again only after a second (tcp_syn_retries, ip-sysctl), a fresh socket sends one at once.
 * @throws Error of the socket, of the limits, or the signal's reason
 */
export function exchange(address: string, port: number, options: EnvdRequest): Promise<EnvdAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<EnvdAnswer>();
  const { signal, maxAnswerBytes = MAX_ANSWER } = options;
  if (signal.aborted) return Promise.reject(signal.reason);
  const own = options.agent === undefined ? new Agent({ keepAlive: false, maxSockets: 1 }) : undefined;
  const call = request({
    agent: options.agent ?? own,
    host: address,
    port,
    method: options.method,
    path: options.path,
    headers: options.headers ?? {},
  });

  const fail = (error: unknown) => {
    reject(error);
    call.destroy();
  };
  const onAbort = () => fail(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const connectTimer = setTimeout(
    () => fail(new Error(`${address}:${port} did not accept within ${options.connectTimeoutMs} ms`)),
    options.connectTimeoutMs,
  );
  const timer = setTimeout(
    () => fail(new Error(`${options.method} ${options.path} was not answered within ${options.timeoutMs} ms`)),
    options.timeoutMs,
  );
  call.on('close', () => {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(connectTimer);
    clearTimeout(timer);
    own?.destroy();
    // A no-op after an answer; else whatever ended the socket has not been told yet.
    reject(new Error(`${address}:${port} closed the connection without an answer`));
  });
  call.on('error', fail);
  const send = () => {
    clearTimeout(connectTimer);
    const body = encode(typeof options.body === 'function' ? options.body() : options.body);
    if (body !== undefined) {
      call.setHeader('content-length', body.length);
      if (!call.hasHeader('content-type')) call.setHeader('content-type', 'application/json');
    }
    call.end(body);
  };
  call.on('socket', (socket) => {
    socket.setNoDelay(true);
    if (socket.connecting) socket.once('connect', send);
    else send();
  });
  call.on('response', (response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxAnswerBytes) fail(new Error(`${options.path} answered more than ${maxAnswerBytes} bytes`));
      else chunks.push(chunk);
    });
    response.on('error', fail);
    response.on('end', () =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() }),
    );
  });
  return promise;
}

function encode(body: unknown): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body;
  return Buffer.from(JSON.stringify(body));
}

/** What a guest calls JSON; undefined when it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
