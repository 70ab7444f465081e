import { spawn } from 'node:child_process';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { TailBuffer } from './tail-buffer.ts';

export interface RunOptions {
  readonly signal?: AbortSignal;
  /** written to the program's stdin, which is /dev/null otherwise */
  readonly input?: string | Uint8Array;
  readonly cwd?: string;
  /** the whole environment; default is that of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** limit of `ms`, after which the program is killed; default 60 s */
  readonly timeoutMs?: number;
  /** limit of stdout in bytes, above which the call fails; default 16 MiB */
  readonly maxOutput?: number;
  /** exit codes that are no failure; default only 0 */
  readonly okCodes?: readonly number[];
  /** called with every line of stderr, for progress */
  readonly onStderrLine?: (line: string) => void;
}

export interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program of the host with an argument vector (never a shell) and collects its output.
 * @throws AenvError `host_command_missing` when it is not installed; `host_command_failed` with its last stderr lines
 *   when it ends with another code, by a signal or not in time
 */
export function run(argv: readonly [string, ...string[]], options: RunOptions = {}): Promise<RunResult> {
  const [file, ...args] = argv;
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>();
  const child = spawn(file, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const chunks: Buffer[] = [];
  const stderr = new TailBuffer(16 * 1024);
  let size = 0;
  let problem: string | undefined;
  const kill = (why: string) => {
    problem ??= why;
    child.kill('SIGKILL');
  };
  const timer = setTimeout(() => kill('did not end in time'), options.timeoutMs ?? 60_000);
  const onAbort = () => kill('was cancelled');
  options.signal?.addEventListener('abort', onAbort, { once: true });
  if (options.signal?.aborted) onAbort();

  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > (options.maxOutput ?? 16 * 1024 * 1024)) kill('printed too much');
    else chunks.push(chunk);
  });
  let partial = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr.append(chunk);
    if (options.onStderrLine === undefined) return;
    const lines = (partial + chunk.toString()).split('\n');
    partial = lines.pop() ?? '';
    for (const line of lines) options.onStderrLine(line);
  });
  // A program may end without reading its input: that is its business, the exit code tells.
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');

  const cleanUp = () => {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', onAbort);
  };
  child.on('error', (error: NodeJS.ErrnoException) => {
    cleanUp();
    const code = error.code === 'ENOENT' ? 'host_command_missing' : 'host_command_failed';
    reject(new AenvError(code, `${file}: ${error.message}`, { cause: error }));
  });
  child.on('close', (code, signal) => {
    cleanUp();
    if (options.signal?.aborted) return reject(options.signal.reason);
    const ok = code !== null && (options.okCodes ?? [0]).includes(code);
    if (problem === undefined && ok) {
      return resolve({ code, stdout: Buffer.concat(chunks).toString(), stderr: stderr.toString() });
    }
    const how = problem ?? (signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`);
    const last = stderr.lastLines(8);
    reject(new AenvError('host_command_failed', `${file} ${how}${last === '' ? '' : `: ${last}`}`));
  });
  return promise;
}
