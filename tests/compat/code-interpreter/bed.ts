import type * as current from '@e2b/code-interpreter';
import { aenv } from '../../harness/cli.ts';
import type { CompatHost } from '../support/host.ts';

/** The newest version names the types; a scenario uses only what its `since` allows. */
export type Interpreter = typeof current;

/** The first time on a machine packages are fetched; later all of it is cached. */
const BUILD_MS = 600_000;

/** What the scenarios of one version share. */
export class InterpreterBed {
  readonly sdk: Interpreter;
  readonly host: CompatHost;
  #sandbox: Promise<current.Sandbox> | undefined;

  private constructor(sdk: Interpreter, host: CompatHost) {
    this.sdk = sdk;
    this.host = host;
  }

  /** Builds the template first, as a user would. */
  static async open(sdk: Interpreter, host: CompatHost): Promise<InterpreterBed> {
    const built = await aenv(host.daemon, ['template', 'build', 'code-interpreter'], { timeoutMs: BUILD_MS });
    if (built.code !== 0) throw new Error(`the template was not built: ${built.stderr}`);
    return new InterpreterBed(sdk, host);
  }

  get options() {
    const { domain, daemon } = this.host;
    return { domain, apiKey: daemon.apiKey, requestTimeoutMs: 180_000 };
  }

  /** From the template that the package itself asks for. */
  sandbox(): Promise<current.Sandbox> {
    this.#sandbox ??= this.sdk.Sandbox.create({
      ...this.options,
      timeoutMs: 600_000,
      envs: { OF_SANDBOX: 'x=y "q" $HOME' },
    });
    return this.#sandbox;
  }

  async close(): Promise<void> {
    const sandbox = await this.#sandbox?.catch(() => undefined);
    await sandbox?.kill();
  }
}
