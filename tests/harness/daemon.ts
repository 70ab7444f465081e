import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identify, killAndWait, type ProcessIdentity } from '@aenv/platform/process/identity.ts';
import { recordBoot } from './boots.ts';
import { until } from './until.ts';

export interface TestDaemonOptions {
  /** added to the daemon's environment */
  readonly env?: Readonly<Record<string, string>>;
  /** limit of `ms` until it answers; building what it needs for the first time takes minutes */
  readonly startMs?: number;
  /** path of what is run instead of the product's own program */
  readonly program?: string;
}

/**
 * A daemon of its own home, runtime folder and port. What virtual machines boot is built once and shared by all tests
 * (AENV_ASSETS, default the cache of an installed aenv).
 */
export class TestDaemon implements AsyncDisposable {
  readonly home: string;
  readonly runtime: string;
  readonly #root: string;
  readonly #options: TestDaemonOptions;
  #child: ChildProcess | undefined;
  #recorded = 0;
  url = '';
  apiKey = '';

  private constructor(root: string, options: TestDaemonOptions) {
    this.#root = root;
    this.#options = options;
    this.home = join(root, 'home');
    this.runtime = join(root, 'run');
  }

  static async start(options: TestDaemonOptions = {}): Promise<TestDaemon> {
    const root = await mkdtemp(join(tmpdir(), 'aenvt-'));
    // The virtual machines run as users of their own and must get through to their disks.
    await chmod(root, 0o711);
    const daemon = new TestDaemon(root, options);
    try {
      await daemon.launch();
    } catch (error) {
      await daemon[Symbol.asyncDispose]();
      throw error;
    }
    return daemon;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the daemon does not run');
    return pid;
  }

  get logFile(): string {
    return join(this.#root, 'daemon.log');
  }

  /** The environment that points an E2B SDK or the CLI at this daemon. */
  get clientEnv(): Record<string, string> {
    return {
      E2B_API_URL: this.url,
      E2B_SANDBOX_URL: this.url,
      E2B_API_KEY: this.apiKey,
      AENV_URL: this.url,
      AENV_API_KEY: this.apiKey,
    };
  }

  /** Starts the process (again, after a crash) and waits until the API answers. @param env for this time only */
  async launch(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await using log = await open(this.logFile, 'a');
    const child = spawn(process.execPath, [this.#options.program ?? 'packages/node/main.ts'], {
      stdio: ['ignore', log.fd, log.fd],
      env: {
        ...process.env,
        AENV_ASSETS: process.env.AENV_ASSETS ?? '/var/lib/aenv/assets',
        AENV_HOME: this.home,
        AENV_RUNTIME: this.runtime,
        AENV_LISTEN: '127.0.0.1:0',
        // What a test leaves running is of no use to anybody, unless the test says so.
        AENV_SHUTDOWN_ACTION: 'kill',
        // Tests that run side by side need the processors, and inventories the same sandboxes as before.
        AENV_WARM_HIGH: '0',
        ...this.#options.env,
        ...env,
      },
    });
    this.#child = child;
    let exited = false;
    child.once('exit', () => {
      exited = true;
    });
    await until(
      async () => {
        const text = await readFile(join(this.runtime, 'daemon.json'), 'utf8');
        const state = JSON.parse(text) as { pid: number; url: string };
        if (state.pid !== child.pid) throw new Error('still the state of the one before');
        this.url = state.url;
        return (await fetch(`${state.url}/health`)).status === 204;
      },
      { timeoutMs: this.#options.startMs ?? 60_000, what: 'the daemon answers', fatal: () => exited },
    ).catch(async (error: unknown) => {
      // It may have ended at any moment of the look that failed.
      throw exited ? new Error(`the daemon ended while it started:\n${await this.log()}`) : error;
    });
    this.apiKey = (await readFile(join(this.home, 'secrets', 'api-key'), 'utf8')).trim();
  }

  async log(): Promise<string> {
    return await readFile(this.logFile, 'utf8').catch(() => '');
  }

  /** A request to the control plane with the key; `path` begins with a slash. */
  async api(method: string, path: string, body?: unknown): Promise<Response> {
    return await fetch(`${this.url}${path}`, {
      method,
      headers: { 'x-api-key': this.apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** A request to a port of a sandbox, routed by headers. */
  async port(sandboxId: string, port: number, path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('e2b-sandbox-id', sandboxId);
    headers.set('e2b-sandbox-port', String(port));
    return await fetch(`${this.url}${path}`, { redirect: 'manual', ...init, headers });
  }

  /** SIGTERM, and waits until the process has ended by itself. */
  async stop(): Promise<number | null> {
    return await this.#end('SIGTERM');
  }

  /** What a crash or the kernel's OOM killer does. */
  async crash(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    this.#child = undefined;
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      const identity: ProcessIdentity | undefined = await identify(child.pid ?? 0);
      child.kill(signal);
      const timer = setTimeout(() => {
        if (identity !== undefined) void killAndWait(identity);
      }, 60_000);
      await ended;
      clearTimeout(timer);
    }
    await this.#recordBoots();
    return child.exitCode;
  }

  /** Hands the boot ids that the daemon logged to the run's count. */
  async #recordBoots(): Promise<void> {
    const ids = (await this.log())
      .split('\n')
      .filter((line) => line.includes('sandbox running'))
      .map((line) => JSON.parse(line) as { bootId?: string; was?: string; parent?: string })
      // One that goes on after a pause, or goes on from another one, runs a kernel that was seen before.
      .filter(({ was, parent }) => was === 'creating' && parent === undefined)
      .map(({ bootId }) => bootId)
      .filter((id) => id !== undefined);
    for (const id of ids.slice(this.#recorded)) await recordBoot(id);
    this.#recorded = ids.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.#root, { recursive: true, force: true });
  }
}
