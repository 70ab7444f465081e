import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { RegistryClient, type RegistryClientOptions } from '../registry/client.ts';
import { type CredentialSource, noCredentials } from '../registry/credentials/contract.ts';
import type { RetryPolicy } from '../registry/retry.ts';
import { type RegistryConfig, registrySettings } from '../registry/settings.ts';
import { RegistryServer, type RegistryServerOptions } from './debian-registry.ts';
import { FaultFront, type FrontOptions } from './fault-front.ts';
import { TestLayout } from './layout.ts';

/** Waits as short as a test can bear. */
export const QUICK: RetryPolicy = { attempts: 4, firstWaitMs: 10, maxWaitMs: 5000 };

/** A registry, a layout to make images in, fronts and clients; all ends with `close`. */
export class RegistryFixture {
  readonly dir: string;
  readonly layout: TestLayout;
  readonly registry: RegistryServer;
  readonly #closers: (() => Promise<void>)[] = [];

  private constructor(dir: string, layout: TestLayout, registry: RegistryServer) {
    this.dir = dir;
    this.layout = layout;
    this.registry = registry;
  }

  static async start(options: Omit<RegistryServerOptions, 'dir'> = {}): Promise<RegistryFixture> {
    const dir = await mkdtemp(join(tmpdir(), 'images-registry-'));
    try {
      await mkdir(join(dir, 'layout'));
      await mkdir(join(dir, 'registry'));
      const registry = await RegistryServer.start({ dir: join(dir, 'registry'), ...options });
      return new RegistryFixture(dir, await TestLayout.in(join(dir, 'layout')), registry);
    } catch (error) {
      await rm(dir, { recursive: true, force: true });
      throw error;
    }
  }

  get base(): string {
    return `http://${this.registry.host}`;
  }

  /** A front before the registry, on another address where one is given. */
  async front(options: Omit<FrontOptions, 'upstream'> = {}): Promise<FaultFront> {
    const front = await FaultFront.start({ upstream: this.base, ...options });
    this.#closers.push(() => front.close());
    return front;
  }

  /** A client for which these hosts are insecure; other settings as given. */
  client(
    insecure: readonly string[],
    options: Partial<RegistryConfig> &
      Partial<Pick<RegistryClientOptions, 'transport' | 'retry' | 'log'>> & { credentials?: CredentialSource } = {},
  ): RegistryClient {
    const { credentials = noCredentials, transport, retry = QUICK, log = silentLogger, ...config } = options;
    const client = new RegistryClient({
      settings: registrySettings({ search: [], mirrors: [], ca: [], ...config, insecure: [...insecure] }),
      credentials,
      log,
      retry,
      ...(transport === undefined ? {} : { transport }),
    });
    this.#closers.push(() => client.close());
    return client;
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
    await this.registry.close();
    await rm(this.dir, { recursive: true, force: true });
  }
}

export async function bytesOf(source: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}
