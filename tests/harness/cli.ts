import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import type { TestDaemon } from './daemon.ts';

export interface CliResult {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface CliOptions {
  readonly input?: string | Buffer;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** Runs `./aenv` as a user would, against a test's daemon. stdin is a pipe that ends after `input`. */
export async function aenv(daemon: TestDaemon, args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const child = spawn(resolve('aenv'), args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { ...process.env, ...daemon.clientEnv, ...options.env },
  });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 60_000);
  const code = await new Promise<number | null>((done) => child.once('close', done));
  clearTimeout(timer);
  return { code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() };
}
