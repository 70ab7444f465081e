import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** What the native applet answers; every text holds one byte in each character. */
export interface AppletAnswer {
  readonly pairs: readonly (readonly [name: string, value: string])[];
  /** a system error, 0 for none */
  readonly errno: number;
}

const END = Buffer.alloc(1);
// A file system that does not answer, as one of FUSE may do, must not keep everybody else waiting for ever.
const STALLED_MS = 20_000;

interface Request {
  readonly take: (answer: AppletAnswer) => void;
  readonly reject: (error: AenvError) => void;
}

/** One run of a native applet that serves requests in their order; the program's own file has the protocol of each. */
export class Applet {
  /** resolves when it serves no more */
  readonly ended: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #stalledMs: number;
  readonly #requests: Request[] = [];
  readonly #end: () => void;
  #pairs: [string, string][] = [];
  #name: string | undefined;
  #rest = '';
  #gone = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(native: string, name: string, stalledMs = STALLED_MS) {
    this.#stalledMs = stalledMs;
    this.#child = spawn(native, [name], { stdio: ['pipe', 'pipe', 'ignore'], env: {}, cwd: '/' });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = () => {
      this.#gone = true;
      clearTimeout(this.#timer);
      for (const { reject } of this.#requests.splice(0)) reject(gone());
      resolve();
    };
    this.#child.on('error', this.#end);
    this.#child.on('close', this.#end);
    this.#child.stdin.on('error', () => {});
    this.#child.stdout.setEncoding('latin1').on('data', (text: string) => this.#take(text));
  }

  /**
   * Sends requests together, each as its records. @returns their answers
   * @throws AenvError `internal` when the process is gone, or does not answer
   */
  ask(requests: readonly (readonly (string | Buffer)[])[]): Promise<AppletAnswer[]> {
    return new Promise((resolve, reject) => {
      const answers: AppletAnswer[] = [];
      if (this.#gone) return reject(gone());
      if (requests.length === 0) return resolve(answers);
      const take = (answer: AppletAnswer) => {
        if (answers.push(answer) === requests.length) resolve(answers);
      };
      for (const _ of requests) this.#requests.push({ take, reject });
      this.#child.stdin.write(Buffer.concat(requests.flat().flatMap((record) => [Buffer.from(record), END])));
      this.#timer ??= this.#deadline();
    });
  }

  /** Kills it. A process that the kernel does not let go is left to the kernel. */
  close(): void {
    this.#child.kill('SIGKILL');
    this.#end();
  }

  #take(text: string): void {
    const records = (this.#rest + text).split('\0');
    this.#rest = records.pop() ?? '';
    for (const record of records) {
      if (this.#name !== undefined) {
        this.#pairs.push([this.#name, record]);
        this.#name = undefined;
      } else if (/^\d/.test(record)) {
        const pairs = this.#pairs;
        this.#pairs = [];
        this.#requests.shift()?.take({ pairs, errno: Number(record) });
      } else {
        this.#name = record;
      }
    }
    clearTimeout(this.#timer);
    this.#timer = this.#requests.length === 0 ? undefined : this.#deadline();
  }

  #deadline(): NodeJS.Timeout {
    return setTimeout(() => this.close(), this.#stalledMs);
  }
}

/** An applet that is started when it is first needed, and again when somebody has ended it. */
export class ResidentApplet {
  readonly #native: string;
  readonly #name: string;
  #applet: Applet | undefined;

  /** @param native path of the native program */
  constructor(native: string, name: string) {
    this.#native = native;
    this.#name = name;
  }

  /** Starts the process ahead of its first use. */
  warmUp(): void {
    this.#running();
  }

  /** As `Applet.ask`. */
  ask(requests: readonly (readonly (string | Buffer)[])[]): Promise<AppletAnswer[]> {
    return this.#running().ask(requests);
  }

  async close(): Promise<void> {
    this.#applet?.close();
    await this.#applet?.ended;
  }

  #running(): Applet {
    if (this.#applet === undefined) {
      const applet = new Applet(this.#native, this.#name);
      this.#applet = applet;
      void applet.ended.then(() => {
        if (this.#applet === applet) this.#applet = undefined;
      });
    }
    return this.#applet;
  }
}

function gone(): AenvError {
  return new AenvError('internal', 'the native program has ended');
}
