import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { z } from 'zod';
import { GuestProcess } from '../../sandboxes/guest-service/guest-process.ts';

const Sandbox = z.object({ sandboxID: z.string(), envdAccessToken: z.string() });
const Forks = z.array(z.object({ sandbox: Sandbox.optional(), error: z.object({ message: z.string() }).optional() }));
const Logs = z.object({
  logs: z.array(
    z.object({ message: z.string(), level: z.string(), fields: z.record(z.string(), z.string()).optional() }),
  ),
});

/** A sandbox of the test: how it is reached. */
export type TestSandbox = z.output<typeof Sandbox>;

const API_MS = 180_000;
const COMMAND_MS = 60_000;
/** So long sandboxes live when the test cannot remove them. */
const TIMEOUT_SECONDS = 900;

/** The API and the proxy of a daemon, as any client uses them. */
export class SelftestClient {
  readonly #url: string;
  readonly #apiKey: string;
  readonly #signal: AbortSignal;

  /** @param signal ends what waits for an answer, except the removal of sandboxes */
  constructor(url: string, apiKey: string, signal: AbortSignal) {
    this.#url = url;
    this.#apiKey = apiKey;
    this.#signal = signal;
  }

  async create(options: object = {}): Promise<TestSandbox> {
    const metadata = { purpose: 'aenv selftest restore' };
    const body = { templateID: 'base', timeout: TIMEOUT_SECONDS, secure: true, metadata, ...options };
    return Sandbox.parse(await this.#call('POST', '/sandboxes', body));
  }

  async pause({ sandboxID }: TestSandbox): Promise<void> {
    await this.#call('POST', `/sandboxes/${sandboxID}/pause`, {});
  }

  async resume({ sandboxID }: TestSandbox): Promise<TestSandbox> {
    return Sandbox.parse(await this.#call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: TIMEOUT_SECONDS }));
  }

  async fork({ sandboxID }: TestSandbox, count: number): Promise<TestSandbox[]> {
    const body = { count, timeout: TIMEOUT_SECONDS };
    const forks = Forks.parse(await this.#call('POST', `/sandboxes/${sandboxID}/fork`, body));
    return forks.map(({ sandbox, error }) => {
      if (sandbox === undefined) throw new Error(`a fork failed: ${error?.message}`);
      return sandbox;
    });
  }

  async remove({ sandboxID }: TestSandbox): Promise<void> {
    await this.#call('DELETE', `/sandboxes/${sandboxID}`);
  }

  /** What the hooks of a sandbox have said. */
  async hookLog({ sandboxID }: TestSandbox): Promise<string[]> {
    const path = `/v2/sandboxes/${sandboxID}/logs?search=hook&limit=1000`;
    return Logs.parse(await this.#call('GET', path)).logs.map(({ level, message }) => `${level}: ${message}`);
  }

  /**
   * What a command of root prints at last, 4 KiB at most.
   * @throws Error when it fails
   */
  async run(sandbox: TestSandbox, cmd: string, accessToken = sandbox.envdAccessToken): Promise<string> {
    const process = this.start(sandbox, cmd, accessToken);
    const timer = setTimeout(() => process.detach(), COMMAND_MS);
    try {
      const { code, status, output } = await process.exited;
      if (code !== 0) throw new Error(`a command ended with ${status}: ${output}`);
      return output;
    } finally {
      clearTimeout(timer);
    }
  }

  /** A command that goes on. */
  start(sandbox: TestSandbox, cmd: string, accessToken = sandbox.envdAccessToken): GuestProcess {
    const { hostname, port } = new URL(this.#url);
    return GuestProcess.start(
      { host: hostname, port: Number(port), headers: routing(sandbox, ENVD_PORT) },
      { cmd, user: 'root', cwd: '/', accessToken },
    );
  }

  async read(sandbox: TestSandbox, path: string): Promise<string> {
    const response = await fetch(`${this.#url}/files?path=${encodeURIComponent(path)}&username=root`, {
      headers: { ...routing(sandbox, ENVD_PORT), 'x-access-token': sandbox.envdAccessToken },
      signal: AbortSignal.timeout(COMMAND_MS),
    });
    if (!response.ok) throw new Error(`${path} could not be read: ${response.status} ${await response.text()}`);
    return await response.text();
  }

  async write(sandbox: TestSandbox, path: string, text: string): Promise<void> {
    const response = await fetch(`${this.#url}/files?path=${encodeURIComponent(path)}&username=root`, {
      method: 'POST',
      headers: {
        ...{ ...routing(sandbox, ENVD_PORT), 'x-access-token': sandbox.envdAccessToken },
        'content-type': 'application/octet-stream',
      },
      body: text,
      signal: AbortSignal.timeout(COMMAND_MS),
    });
    if (!response.ok) throw new Error(`${path} could not be written: ${response.status} ${await response.text()}`);
  }

  /** Ends with the answer of a port of the sandbox, or with why it broke. */
  async listen(sandbox: TestSandbox, port: number, signal: AbortSignal): Promise<string> {
    try {
      const response = await fetch(this.#url, { headers: routing(sandbox, port), signal });
      return `ended: ${(await response.text()).slice(0, 100)}`;
    } catch (error) {
      if (signal.aborted) return 'hangs';
      return `broke: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  async #call(method: string, path: string, body?: object): Promise<unknown> {
    const limit = AbortSignal.timeout(API_MS);
    const response = await fetch(this.#url + path, {
      method,
      headers: { 'x-api-key': this.#apiKey, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: method === 'DELETE' ? limit : AbortSignal.any([limit, this.#signal]),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}: ${text.slice(0, 500)}`);
    return text === '' ? undefined : JSON.parse(text);
  }
}

function routing({ sandboxID }: TestSandbox, port: number): Record<string, string> {
  return { 'e2b-sandbox-id': sandboxID, 'e2b-sandbox-port': String(port) };
}
