import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { run } from '@aenv/platform/process/run.ts';
import { TestDaemon } from '../../harness/daemon.ts';
import './loopback-names.ts';

const NAME = 'compat.test';

/** Sandboxes that may be alive at once: so many that a scenario can meet the limit. */
export const MAX_SANDBOXES = 2;
/** Requests of one sandbox at a time: so few that a scenario can meet the limit. */
export const MAX_CONNECTIONS = 24;

/**
 * A daemon as users set one up who lead clients to it by E2B_DOMAIN alone: HTTPS with a wildcard certificate of
 * `aenv cert`. It answers plain HTTP at `daemon.url` too.
 */
export interface CompatHost {
  readonly daemon: TestDaemon;
  /** with the port, as E2B_DOMAIN takes it */
  readonly domain: string;
  /** file with the authority of the certificate, for NODE_EXTRA_CA_CERTS of other processes */
  readonly authority: string;
  /** folder for files of the tests */
  readonly scratch: string;
}

/** Daemons for columns that run side by side. This process trusts their certificate and finds their names. */
export class Hosts implements AsyncDisposable {
  readonly #scratch: string;
  readonly #all: CompatHost[] = [];
  readonly #free: CompatHost[] = [];

  private constructor(scratch: string) {
    this.#scratch = scratch;
  }

  static async open(): Promise<Hosts> {
    const hosts = new Hosts(await mkdtemp(join(tmpdir(), 'aenvt-compat-')));
    try {
      await run([process.execPath, 'packages/node/host/main.ts', 'cert', '--domain', NAME, '--out', hosts.#scratch]);
      const authority = await readFile(hosts.#authority, 'utf8');
      tls.setDefaultCACertificates([...tls.getCACertificates('default'), authority]);
      process.env.AENV_COMPAT_DOMAIN = NAME;
      return hosts;
    } catch (error) {
      await hosts[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** One that nobody else uses, started if there is none. */
  async take(): Promise<CompatHost> {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const port = await freePort();
    const domain = `${NAME}:${port}`;
    const daemon = await TestDaemon.start({
      env: {
        AENV_TLS_CERT: join(this.#scratch, 'cert.pem'),
        AENV_TLS_KEY: join(this.#scratch, 'key.pem'),
        AENV_TLS_LISTEN: `127.0.0.1:${port}`,
        AENV_PROXY_DOMAINS: domain,
        AENV_PROXY_MAX_CONNECTIONS_PER_SANDBOX: String(MAX_CONNECTIONS),
        AENV_METRICS_SAMPLE_SECONDS: '1',
        AENV_LIMITS_MAX_SANDBOXES: String(MAX_SANDBOXES),
      },
    });
    const host = { daemon, domain, authority: this.#authority, scratch: this.#scratch };
    this.#all.push(host);
    return host;
  }

  /** Gives one back without sandboxes. */
  give(host: CompatHost): void {
    this.#free.push(host);
  }

  get #authority(): string {
    return join(this.#scratch, 'ca.pem');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map(({ daemon }) => daemon[Symbol.asyncDispose]()));
    await rm(this.#scratch, { recursive: true, force: true });
  }
}

/** A port that was free a moment ago: the domain names it before the daemon listens. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}
