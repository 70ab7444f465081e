import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { endianness } from 'node:os';

/**
 * How long after one is taken the next one is started, `ms`, unless a process has ended before: in a guest under emulation
 * that goes on from a capture, half a second is what the first program takes to start, and the copy would be made meanwhile.
 */
const REFILL_MS = 1_000;
/** How long one that was told what to be may take to begin, `ms`: somebody may have stopped it while it waited. */
const PATIENCE_MS = 5_000;
const STDIO: StdioOptions = ['ignore', 'ignore', 'ignore', 'pipe'];
/** three numbers of 32 bits */
const HEAD = 12;

/** A native program with its control socket. */
export interface Spawned {
  readonly child: ChildProcess;
  readonly control: Socket;
}

interface Waiting extends Spawned {
  readonly gone: () => void;
}

/**
 * A process that stands ready to become the next program. What takes longest of a start is the copy that the kernel makes
 * of this process; so it is made ahead, and what to run is told to it afterwards. One is enough: whoever finds none starts
 * his own.
 */
export class StandBy {
  readonly #native: string;
  readonly #patienceMs: number;
  #waiting: Waiting | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /**
   * @param native path of the native program
   * @param patienceMs after which one that was told what to be and does not begin is given up
   */
  constructor(native: string, patienceMs = PATIENCE_MS) {
    this.#native = native;
    this.#patienceMs = patienceMs;
  }

  /**
   * One that waits, which is the caller's from now on, if there is one.
   * @returns with it, how many `ms` it may take to begin once it is told what to be
   */
  take(): (Spawned & { readonly patienceMs: number }) | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!this.#closed) this.#timer ??= setTimeout(() => this.refill(), REFILL_MS).unref();
    if (waiting === undefined) return undefined;
    const { child, control, gone } = waiting;
    child.off('error', gone).off('exit', gone).ref();
    control.off('error', gone).ref();
    return { child, control, patienceMs: this.#patienceMs };
  }

  /** Has one wait, unless one does. */
  refill(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#closed || this.#waiting !== undefined) return;
    let child: ChildProcess;
    try {
      child = spawn(this.#native, ['spawn', '--wait'], { stdio: STDIO, env: {}, cwd: '/' });
    } catch {
      // Nothing waits then; whoever starts a program is told what is wrong.
      return;
    }
    const control = child.stdio[3];
    if (!(control instanceof Socket)) return;
    const gone = () => {
      control.destroy();
      if (this.#waiting?.child === child) this.#waiting = undefined;
    };
    // It is no reason for this process to go on.
    child.on('error', gone).on('exit', gone).unref();
    control.on('error', gone).unref();
    this.#waiting = { child, control, gone };
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting?.child.kill('SIGKILL');
    this.#waiting?.control.destroy();
    this.#waiting = undefined;
  }
}

/**
 * What one that waits is told: spawn-request.c has the form.
 * @returns undefined for what no program can be given: a string with a NUL character
 */
export function standByRequest(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
): Buffer | undefined {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const strings = [...argv, ...variables];
  if (strings.some((text) => text.includes('\0'))) return undefined;
  const body = Buffer.from(`${strings.join('\0')}\0`);
  const head = Buffer.alloc(HEAD);
  const numbers = [body.length, argv.length, variables.length];
  for (const [at, number] of numbers.entries()) {
    if (endianness() === 'LE') head.writeUInt32LE(number, 4 * at);
    else head.writeUInt32BE(number, 4 * at);
  }
  return Buffer.concat([head, body]);
}
