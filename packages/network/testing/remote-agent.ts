import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { isRecord } from '../host/commands.ts';
import type { AgentRequest, FlowKind, FlowState, Outcome } from './agent-protocol.ts';

const AGENT = fileURLToPath(new URL('./agent.ts', import.meta.url));

interface Pending {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** A process in another network namespace, remote-controlled over its stdin and stdout. */
export class RemoteAgent {
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  /** @param netns path of the namespace; default that of this process */
  constructor(netns?: string) {
    const argv = [process.execPath, AGENT] as const;
    const [file, ...args] = netns === undefined ? argv : (['nsenter', `--net=${netns}`, ...argv] as const);
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    this.#input = child.stdin;
    child.stdin.on('error', () => {});
    child.on('close', () => {
      for (const { reject } of this.#pending.values()) reject(new Error('the agent ended'));
      this.#pending.clear();
    });
    this.#read(child.stdout);
  }

  async dial(host: string, port: number, bytes?: Uint8Array): Promise<Outcome> {
    const payload = bytes === undefined ? {} : { hex: Buffer.from(bytes).toString('hex') };
    return asOutcome(await this.#ask({ do: 'dial', host, port, ...payload }));
  }

  async datagram(host: string, port: number, bytes: Uint8Array): Promise<Outcome> {
    return asOutcome(await this.#ask({ do: 'datagram', host, port, hex: Buffer.from(bytes).toString('hex') }));
  }

  async open(name: string, host: string, port: number, kind: FlowKind): Promise<FlowState> {
    return asFlow(await this.#ask({ do: 'open', name, host, port, kind }));
  }

  async flow(name: string): Promise<FlowState> {
    return asFlow(await this.#ask({ do: 'flow', name }));
  }

  async serve(port: number): Promise<void> {
    await this.#ask({ do: 'serve', port });
  }

  async seen(): Promise<number> {
    return Number(await this.#ask({ do: 'seen' }));
  }

  async serveNames(address: string): Promise<void> {
    await this.#ask({ do: 'serve-names', address });
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.#input.end();
    await closed;
  }

  #ask(request: AgentRequest): Promise<unknown> {
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(id, { resolve, reject });
    this.#input.write(`${JSON.stringify({ id, request })}\n`);
    return promise;
  }

  #read(output: Readable): void {
    createInterface({ input: output }).on('line', (line) => {
      const message: unknown = JSON.parse(line);
      if (!isRecord(message)) return;
      const pending = this.#pending.get(Number(message.id));
      this.#pending.delete(Number(message.id));
      if (typeof message.error === 'string') pending?.reject(new Error(message.error));
      else pending?.resolve(message.answer);
    });
  }
}

function asOutcome(value: unknown): Outcome {
  if (!isRecord(value)) throw new Error('not an outcome');
  return { result: String(value.result), data: String(value.data), ms: Number(value.ms) };
}

function asFlow(value: unknown): FlowState {
  if (!isRecord(value)) throw new Error('not a flow');
  return { received: Number(value.received), state: String(value.state) };
}
