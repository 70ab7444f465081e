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

interface Request {
  readonly resolve: (answer: AppletAnswer) => void;
  readonly reject: (error: AenvError) => void;
}

/** One run of the native `xattr` applet; xattr.c has its protocol. Requests are served in their order. */
export class XattrApplet {
  /** resolves when the process is gone */
  readonly ended: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #requests: Request[] = [];
  #pairs: [string, string][] = [];
  #name: string | undefined;
  #rest = '';
  #gone = false;

  constructor(native: string) {
    this.#child = spawn(native, ['xattr'], { stdio: ['pipe', 'pipe', 'ignore'], env: {}, cwd: '/' });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise.then(() => this.#end());
    this.#child.on('error', () => resolve());
    this.#child.on('close', () => resolve());
    this.#child.stdin.on('error', () => {});
    this.#child.stdout.setEncoding('latin1').on('data', (text: string) => this.#take(text));
  }

  /** @throws AenvError `internal` when the process is gone */
  ask(...records: readonly (string | Buffer)[]): Promise<AppletAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#gone) return reject(gone());
      this.#requests.push({ resolve, reject });
      this.#child.stdin.write(Buffer.concat(records.flatMap((record) => [Buffer.from(record), END])));
    });
  }

  close(): Promise<void> {
    this.#child.kill('SIGKILL');
    return this.ended;
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
        this.#requests.shift()?.resolve({ pairs, errno: Number(record) });
      } else {
        this.#name = record;
      }
    }
  }

  #end(): void {
    this.#gone = true;
    for (const { reject } of this.#requests.splice(0)) reject(gone());
  }
}

function gone(): AenvError {
  return new AenvError('internal', 'the native program that serves attributes of files has ended');
}
