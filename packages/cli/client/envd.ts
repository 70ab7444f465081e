import {
  Process,
  type ProcessEvent,
  ProcessInputSchema,
  ProcessSelectorSchema,
  PTY_SizeSchema,
  PTYSchema,
  Signal,
} from '@aenv/contracts/envd/gen/process_pb.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { create } from '@bufbuild/protobuf';
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { CliError } from '../output/cli-error.ts';
import type { SandboxInfo } from './control-plane.ts';

export interface StartOptions {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly envs: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin: boolean;
  readonly size?: { readonly cols: number; readonly rows: number };
}

/** How a process ended: `signal` is the name as envd gives it (`killed`), else `code` counts. */
export interface ExitStatus {
  readonly code: number;
  readonly signal?: string;
}

/** The daemon in a sandbox, reached through the server by the routing headers. */
export class EnvdClient {
  readonly #process: Client<typeof Process>;
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, sandbox: SandboxInfo, user?: string) {
    this.#url = url;
    this.#headers = { 'e2b-sandbox-id': sandbox.sandboxID, 'e2b-sandbox-port': String(ENVD_PORT) };
    if (sandbox.envdAccessToken !== undefined) this.#headers['x-access-token'] = sandbox.envdAccessToken;
    if (user !== undefined) this.#headers.authorization = `Basic ${Buffer.from(`${user}:`).toString('base64')}`;
    const transport = createConnectTransport({
      baseUrl: url,
      httpVersion: '1.1',
      useBinaryFormat: false,
      interceptors: [
        (next) => async (request) => {
          for (const [name, value] of Object.entries(this.#headers)) request.header.set(name, value);
          request.header.set('keepalive-ping-interval', '30');
          return await next(request);
        },
      ],
    });
    this.#process = createClient(Process, transport);
  }

  /**
   * Starts a process and gives its events as they come; the first one is `start`.
   * @throws CliError with the exit code of a shell where it could not be started, 125 where that is no fault of the command
   */
  async *start(options: StartOptions, signal?: AbortSignal): AsyncGenerator<ProcessEvent['event']> {
    const stream = this.#process.start(
      {
        process: {
          cmd: options.cmd,
          args: [...options.args],
          envs: { ...options.envs },
          ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        },
        stdin: options.stdin,
        ...(options.size === undefined
          ? {}
          : { pty: create(PTYSchema, { size: create(PTY_SizeSchema, { ...options.size }) }) }),
      },
      signal === undefined ? {} : { signal },
    );
    try {
      for await (const { event } of stream) if (event !== undefined) yield event.event;
    } catch (error) {
      throw explain((await this.#refusal(error)) ?? error, options.cmd);
    }
  }

  /** The server's own words where it could not reach envd: of its answer the library keeps the status alone. */
  async #refusal(error: unknown): Promise<CliError | undefined> {
    if (!(error instanceof ConnectError && /^HTTP \d+$/.test(error.rawMessage))) return undefined;
    try {
      const answer = await this.fetch('/health', { signal: AbortSignal.timeout(10_000) });
      const { message, remediation } = (await answer.json()) as Record<string, unknown>;
      if (typeof message !== 'string') return undefined;
      return new CliError(message, typeof remediation === 'string' ? remediation : undefined, 125);
    } catch {
      return undefined;
    }
  }

  async sendInput(pid: number, data: Uint8Array, kind: 'stdin' | 'pty'): Promise<void> {
    const input = create(ProcessInputSchema, { input: { case: kind, value: data } });
    await this.#process.sendInput({ process: selector(pid), input });
  }

  async closeStdin(pid: number): Promise<void> {
    await this.#process.closeStdin({ process: selector(pid) });
  }

  async resize(pid: number, size: { cols: number; rows: number }): Promise<void> {
    const pty = create(PTYSchema, { size: create(PTY_SizeSchema, size) });
    await this.#process.update({ process: selector(pid), pty });
  }

  async signal(pid: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const value = signal === 'SIGTERM' ? Signal.SIGTERM : Signal.SIGKILL;
    await this.#process.sendSignal({ process: selector(pid), signal: value });
  }

  /** A plain HTTP request to envd; `path` begins with a slash. */
  async fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(this.#headers)) headers.set(name, value);
    return await fetch(`${this.#url}${path}`, { ...init, headers, redirect: 'error' });
  }
}

function selector(pid: number) {
  return create(ProcessSelectorSchema, { selector: { case: 'pid', value: pid } });
}

function explain(error: unknown, cmd: string): unknown {
  if (!(error instanceof ConnectError)) return error;
  if (error.code === Code.NotFound) return new CliError(`${cmd}: ${error.rawMessage}`, undefined, 127);
  if (error.code === Code.PermissionDenied) return new CliError(`${cmd}: ${error.rawMessage}`, undefined, 126);
  const hint = error.code === Code.Unauthenticated ? 'Use a user that exists in the sandbox.' : undefined;
  return new CliError(error.rawMessage, hint, 125);
}
