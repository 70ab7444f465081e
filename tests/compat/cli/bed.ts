import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import type { CompatHost } from '../support/host.ts';

const CLI = join(dirname(createRequire(import.meta.url).resolve('@e2b/cli/package.json')), 'dist/index.js');
const NAMES = fileURLToPath(new URL('../support/loopback-names.ts', import.meta.url));

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** what its stdin, a pipe, gives; nothing when absent */
  readonly input?: string | Buffer;
  /** replaces variables; an empty one is taken away */
  readonly env?: Readonly<Record<string, string>>;
}

const CREATED = ['--timeout', '600', '--lifecycle.ontimeout', 'pause', '--lifecycle.autoresume'];

/** One way to lead the CLI here, and the sandbox that its scenarios share. */
export class CliBed {
  readonly host: CompatHost;
  readonly home: string;
  readonly #way: Readonly<Record<string, string>>;
  #sandboxId: Promise<string> | undefined;

  /** @param way the variables that lead it here */
  constructor(host: CompatHost, name: string, way: Readonly<Record<string, string>>) {
    this.host = host;
    this.home = join(host.scratch, name);
    this.#way = way;
  }

  /** The sandbox of most scenarios, made by the CLI itself. */
  sandboxId(): Promise<string> {
    this.#sandboxId ??= this.#create();
    return this.#sandboxId;
  }

  async #create(): Promise<string> {
    const { stdout } = await this.ok(['sandbox', 'create', 'base', ...CREATED, '--detach']);
    return stdout.trim();
  }

  /** The environment of a user who has set just what leads here. */
  environment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    const all = {
      PATH: process.env.PATH ?? '',
      HOME: this.home,
      // It would ask the npm registry for a newer version of itself.
      NO_UPDATE_NOTIFIER: '1',
      NODE_OPTIONS: `--import=${NAMES}`,
      AENV_COMPAT_DOMAIN: process.env.AENV_COMPAT_DOMAIN ?? '',
      NODE_EXTRA_CA_CERTS: this.host.authority,
      E2B_API_KEY: this.host.daemon.apiKey,
      ...this.#way,
      ...more,
    };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
  }

  async run(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
    const child = await this.#spawn(process.execPath, [CLI, ...args], options.env);
    child.stdin.end(options.input ?? '');
    return await this.#outcome(child);
  }

  /** The same in a terminal of its own, of 30 lines by 100; each of `lines` is typed when a prompt shows. */
  async inTerminal(args: readonly string[], lines: readonly string[]): Promise<CliResult> {
    const command = `stty rows 30 cols 100; exec ${[process.execPath, CLI, ...args].join(' ')}`;
    const child = await this.#spawn('script', ['-qefc', command, '/dev/null'], { TERM: 'xterm-256color' });
    let shown = '';
    const waiting = [...lines];
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
      if (!/[$#] $/.test(stripVTControlCharacters(shown))) return;
      const next = waiting.shift();
      shown = '';
      if (next !== undefined) child.stdin.write(`${next}\n`);
    });
    return await this.#outcome(child);
  }

  /** `run`, and it has to succeed. */
  async ok(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
    const result = await this.run(args, options);
    assert.equal(result.code, 0, `${args.join(' ')}: ${result.stdout}${result.stderr}`);
    return result;
  }

  async #spawn(file: string, args: readonly string[], env: CliOptions['env']): Promise<ChildProcessWithoutNullStreams> {
    await mkdir(this.home, { recursive: true });
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], env: this.environment(env) });
    child.stdin.on('error', () => {});
    return child;
  }

  async #outcome(child: ChildProcessWithoutNullStreams): Promise<CliResult> {
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    const timer = setTimeout(() => child.kill('SIGKILL'), 120_000);
    const code = await new Promise<number | null>((done) => child.once('close', done));
    clearTimeout(timer);
    return { code, stdout: plain(stdout), stderr: plain(stderr) };
  }

  async close(): Promise<void> {
    const id = await this.#sandboxId?.catch(() => undefined);
    if (id !== undefined) await this.host.daemon.api('DELETE', `/sandboxes/${id}`);
  }
}

/** Output without colours and links. */
function plain(chunks: readonly Buffer[]): string {
  return stripVTControlCharacters(Buffer.concat(chunks).toString());
}
