import type { ProcessConfig } from '@aenv/contracts/envd/gen/process_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { describeExit, type EndReport } from './exit-status.ts';
import { Input } from './input.ts';
import type { Launched, TerminalSize } from './launch.ts';
import { Output, type OutputLimits } from './output.ts';
import { Subscription } from './subscription.ts';

export interface ProcessIdentity {
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
}

/**
 * A process that was started here, until it has ended and its output is through:
 *
 *   running --exit--> draining --output through--> ended
 */
export class RunningProcess {
  readonly pid: number;
  readonly identity: ProcessIdentity;
  readonly input: Input;
  /** Resolves once, when the process counts as ended. Never rejects. */
  readonly ended: Promise<EndReport>;
  #report: EndReport | undefined;
  readonly #launched: Launched;
  readonly #output: Output;
  #gone = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(launched: Launched, identity: ProcessIdentity, limits: OutputLimits) {
    this.pid = launched.pid;
    this.identity = identity;
    this.#launched = launched;
    this.input = new Input(launched.input, launched.resize === undefined ? 'stdin' : 'pty');
    this.#output = new Output(launched.outputs, limits);
    this.ended = this.#run();
  }

  get hasTerminal(): boolean {
    return this.#launched.resize !== undefined;
  }

  /** How it ended, once it has. */
  get report(): EndReport | undefined {
    return this.#report;
  }

  /** Listens from now on. Everything until the end event comes through, unless the listener stops reading. */
  subscribe(): Subscription {
    const subscription = new Subscription(
      (listener) => this.#output.taken(listener),
      (listener) => this.#output.remove(listener),
    );
    if (this.#report !== undefined) {
      subscription.push({ kind: 'end', report: this.#report });
      subscription.close('ended');
    } else {
      this.#output.add(subscription);
    }
    return subscription;
  }

  /** SIGKILL goes to the whole process group, so that no child is left; anything else to the process alone. */
  signal(name: 'SIGKILL' | 'SIGTERM'): void {
    if (this.#gone) throw new AenvError('process_not_found', `process ${this.pid} has ended`);
    this.#kill(name === 'SIGKILL' ? -this.pid : this.pid, name);
  }

  /** Kills the process group in `ms`, and `onExpiry` is told; without effect when the process has ended by then. */
  killAfter(ms: number, onExpiry: () => void): void {
    this.#deadline = setTimeout(
      () => {
        onExpiry();
        // When only the output is still on its way, the number may already be another process's.
        if (!this.#gone) this.#kill(-this.pid, 'SIGKILL');
      },
      Math.max(0, ms),
    );
  }

  /** @throws AenvError `input_refused` without a terminal */
  resize(size: TerminalSize): void {
    if (this.#launched.resize === undefined) {
      throw new AenvError('input_refused', `process ${this.pid} has no terminal`);
    }
    this.#launched.resize(size);
  }

  async #run(): Promise<EndReport> {
    const status = await this.#launched.exited.catch(() => ({ code: 255 }));
    this.#gone = true;
    this.input.close();
    await this.#output.drained();
    clearTimeout(this.#deadline);
    const report = describeExit(status);
    this.#report = report;
    for (const listener of [...this.#output.listeners]) {
      listener.push({ kind: 'end', report });
      listener.close('ended');
    }
    return report;
  }

  #kill(target: number, signal: NodeJS.Signals): void {
    try {
      process.kill(target, signal);
    } catch {
      // no such process: it has just ended
    }
  }
}
