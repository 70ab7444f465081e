import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { downloadPackages } from '@aenv/platform/debian/download.ts';
import { hostCodename } from '@aenv/platform/debian/host.ts';
import { unpackDeb } from '@aenv/platform/debian/unpack.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { assetFolder } from '../cache/asset-folder.ts';

/**
 * Debian's `docker-registry`, unpacked beside the other assets and not installed, since its package starts a service.
 * @returns path of the program
 */
export async function ensureRegistryProgram(options: {
  readonly assetsDir: string;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}): Promise<string> {
  const folder = await assetFolder(
    join(options.assetsDir, 'test-tools'),
    'docker-registry',
    async (result, scratch) => {
      const [deb] = await downloadPackages(
        { suite: await hostCodename(), packages: ['docker-registry'], withDependencies: false },
        { workDir: scratch, log: options.log, ...(options.signal === undefined ? {} : { signal: options.signal }) },
      );
      await unpackDeb(deb?.path ?? '', join(scratch, 'unpacked'), options.signal);
      await rename(join(scratch, 'unpacked', 'usr', 'bin', 'docker-registry'), join(result, 'docker-registry'));
    },
  );
  return join(folder, 'docker-registry');
}

export interface RegistryServerOptions {
  /** empty folder for its configuration and its data */
  readonly dir: string;
  /** lines of `user:bcrypt hash` */
  readonly htpasswd?: string;
  readonly tls?: { readonly certificate: string; readonly key: string };
}

/** A running docker-registry on a loopback port of its own. */
export class RegistryServer {
  /** `127.0.0.1:PORT` */
  readonly host: string;
  readonly #child: ChildProcess;

  private constructor(host: string, child: ChildProcess) {
    this.host = host;
    this.#child = child;
  }

  static async start(options: RegistryServerOptions): Promise<RegistryServer> {
    const program = process.env.AENV_TEST_REGISTRY;
    if (program === undefined) throw new Error('AENV_TEST_REGISTRY is not set: run this test with tools/test/main.ts');
    const config = join(options.dir, 'config.json');
    await writeFile(config, JSON.stringify(await configuration(options)));
    const child = spawn(program, ['serve', config], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env.PATH },
    });
    try {
      return new RegistryServer(await listening(child), child);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** YAML takes JSON as it is. */
async function configuration(options: RegistryServerOptions): Promise<object> {
  const passwords = join(options.dir, 'htpasswd');
  if (options.htpasswd !== undefined) await writeFile(passwords, options.htpasswd);
  return {
    version: 0.1,
    log: { level: 'info', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(options.dir, 'data') }, delete: { enabled: true } },
    http: { addr: '127.0.0.1:0', secret: 'test', ...(options.tls === undefined ? {} : { tls: options.tls }) },
    ...(options.htpasswd === undefined ? {} : { auth: { htpasswd: { realm: 'test', path: passwords } } }),
  };
}

/** The address in its line `listening on 127.0.0.1:34567`. */
async function listening(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error('no stderr');
  const last: string[] = [];
  const failure = once(child, 'error').then(([error]) => Promise.reject(error as Error));
  const reading = (async () => {
    const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
    for await (const line of lines) {
      last.push(line);
      const host = /listening on (127\.0\.0\.1:\d+)/.exec(line)?.[1];
      if (host !== undefined) return host;
    }
    throw new Error(`docker-registry has ended: ${last.slice(-5).join('\n')}`);
  })();
  const host = await Promise.race([reading, failure]);
  // What it says later has no reader.
  child.stderr.resume();
  return host;
}
