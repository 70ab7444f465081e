import type * as current from 'e2b';
import { type CompatHost, MAX_SANDBOXES } from '../support/host.ts';
import { compareVersions } from '../support/scenario.ts';

/** The newest version names the types; a scenario uses only what its `since` allows. */
export type Sdk = typeof current;
export type Sandbox = current.Sandbox;

/** Boots under emulation, on a busy machine. */
const PATIENCE_MS = 180_000;

export const METADATA = { 'a b': 'c&d', 'ü%': '1+1=2' };
export const ENVS = { A: 'x=y', B: 'l1\nl2', C: '$HOME "q"', D: "it's" };

/** What the scenarios of one version share: two sandboxes, because each costs a boot. */
export class SdkBed {
  readonly sdk: Sdk;
  readonly version: string;
  readonly host: CompatHost;
  #main: Promise<Sandbox> | undefined;
  #second: Promise<Sandbox> | undefined;

  constructor(sdk: Sdk, version: string, host: CompatHost) {
    this.sdk = sdk;
    this.version = version;
    this.host = host;
  }

  /** Options that lead the SDK here over the domain alone. */
  get options() {
    const { domain, daemon } = this.host;
    return { domain, apiKey: daemon.apiKey, requestTimeoutMs: PATIENCE_MS };
  }

  /** The sandbox of most scenarios. */
  main(): Promise<Sandbox> {
    this.#main ??= this.sdk.Sandbox.create('base', {
      ...this.options,
      timeoutMs: 600_000,
      metadata: { ...METADATA, version: this.version },
      envs: ENVS,
    });
    return this.#main;
  }

  /**
   * A private one without internet that is paused at its end and brought back by requests, where the version knows such
   * things.
   */
  second(): Promise<Sandbox> {
    this.#second ??= this.sdk.Sandbox.create('base', {
      ...this.options,
      timeoutMs: 600_000,
      allowInternetAccess: false,
      network: { allowPublicTraffic: false, maskRequestHost: `localhost:\${PORT}` },
      lifecycle: { onTimeout: 'pause', autoResume: true },
      metadata: { version: this.version },
    });
    return this.#second;
  }

  /** Both, so that no other can be created. */
  async full(): Promise<void> {
    const all = await Promise.all([this.main(), this.second()]);
    if (all.length !== MAX_SANDBOXES) throw new Error('the limit of the node is another one');
  }

  /** Whether the version is that one or newer: what it expects of errors differs. */
  from(version: string): boolean {
    return compareVersions(this.version, version) >= 0;
  }

  async close(): Promise<void> {
    for (const made of [this.#main, this.#second]) {
      const sandbox = await made?.catch(() => undefined);
      if (sandbox !== undefined) await this.sdk.Sandbox.kill(sandbox.sandboxId, this.options);
    }
  }
}
