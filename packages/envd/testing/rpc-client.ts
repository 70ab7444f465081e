/** Connect over plain fetch, so that tests see the bytes of the protocol and not a library's view of them. */

export interface RpcAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export interface RpcOptions {
  readonly user?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Frame {
  readonly flags: number;
  // Parsed JSON of any shape: tests look into it as they need.
  readonly message: Message;
}

export interface Message {
  readonly event?: {
    readonly start?: { readonly pid: number };
    readonly data?: { readonly stdout?: string; readonly stderr?: string; readonly pty?: string };
    readonly end?: {
      readonly exitCode?: number;
      readonly exited?: boolean;
      readonly status?: string;
      readonly error?: string;
    };
    readonly keepalive?: object;
  };
  readonly error?: { readonly code: string; readonly message: string };
}

function headersOf(options: RpcOptions): Record<string, string> {
  return {
    'connect-protocol-version': '1',
    ...(options.user === undefined ? {} : { authorization: `Basic ${btoa(`${options.user}:`)}` }),
    ...(options.token === undefined ? {} : { 'x-access-token': options.token }),
    ...options.headers,
  };
}

export async function unary(base: string, method: string, body: unknown, options: RpcOptions = {}): Promise<RpcAnswer> {
  const response = await fetch(`${base}/${method}`, {
    method: 'POST',
    headers: { ...headersOf(options), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

export function envelope(message: unknown, flags = 0): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}

/** Calls a streaming method and gives its frames as they come; leaving the loop closes the connection. */
export async function* stream(
  base: string,
  method: string,
  body: unknown,
  options: RpcOptions = {},
): AsyncGenerator<Frame> {
  const leave = new AbortController();
  options.signal?.addEventListener('abort', () => leave.abort());
  const response = await fetch(`${base}/${method}`, {
    method: 'POST',
    headers: { ...headersOf(options), 'content-type': 'application/connect+json' },
    body: new Uint8Array(envelope(body)),
    signal: leave.signal,
  });
  if (response.status !== 200 || response.headers.get('content-type') !== 'application/connect+json') {
    throw new Error(`status ${response.status}: ${await response.text()}`);
  }
  try {
    yield* frames(response.body ?? new ReadableStream());
  } finally {
    leave.abort();
  }
}

async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    parts.push(chunk);
    size += chunk.length;
    if (size < 5) continue;
    let all = Buffer.concat(parts);
    while (all.length >= 5 && all.length >= 5 + all.readUInt32BE(1)) {
      const length = all.readUInt32BE(1);
      yield { flags: all[0] ?? 0, message: JSON.parse(all.subarray(5, 5 + length).toString()) };
      all = all.subarray(5 + length);
    }
    parts.splice(0, parts.length, all);
    size = all.length;
  }
  if (size > 0) throw new Error(`${size} bytes after the last frame`);
}

export interface RunResult {
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly pty: string;
  readonly end: NonNullable<NonNullable<Message['event']>['end']> | undefined;
  readonly error: Message['error'];
  readonly endFrames: number;
}

/** Reads a process stream to its end. */
export async function collect(source: AsyncIterable<Frame>): Promise<RunResult> {
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[], pty: [] as Buffer[] };
  let pid = 0;
  let end: RunResult['end'];
  let error: Message['error'];
  let endFrames = 0;
  for await (const { flags, message } of source) {
    if (flags === 2) {
      endFrames += 1;
      error = message.error;
    }
    pid = message.event?.start?.pid ?? pid;
    end = message.event?.end ?? end;
    for (const kind of ['stdout', 'stderr', 'pty'] as const) {
      const text = message.event?.data?.[kind];
      if (text !== undefined) output[kind].push(Buffer.from(text, 'base64'));
    }
  }
  const text = (kind: keyof typeof output) => Buffer.concat(output[kind]).toString();
  return { pid, stdout: text('stdout'), stderr: text('stderr'), pty: text('pty'), end, error, endFrames };
}

export function start(
  base: string,
  cmd: string,
  args: readonly string[] = [],
  request: Record<string, unknown> = {},
  options: RpcOptions = {},
): AsyncGenerator<Frame> {
  const { envs, cwd, ...rest } = request;
  return stream(base, 'process.Process/Start', { process: { cmd, args, envs, cwd }, ...rest }, options);
}

/** Runs a program to its end. */
export function run(
  base: string,
  cmd: string,
  args: readonly string[] = [],
  request: Record<string, unknown> = {},
  options: RpcOptions = {},
): Promise<RunResult> {
  return collect(start(base, cmd, args, request, options));
}
