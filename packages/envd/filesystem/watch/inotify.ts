import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

// inotify(7)
export const IN = {
  MODIFY: 0x2,
  ATTRIB: 0x4,
  MOVED_FROM: 0x40,
  MOVED_TO: 0x80,
  CREATE: 0x100,
  DELETE: 0x200,
  DELETE_SELF: 0x400,
  MOVE_SELF: 0x800,
  UNMOUNT: 0x2000,
  Q_OVERFLOW: 0x4000,
  IGNORED: 0x8000,
  ONLYDIR: 0x0100_0000,
  DONT_FOLLOW: 0x0200_0000,
  ISDIR: 0x4000_0000,
} as const;

/** A record of the kernel. */
export interface InotifyEvent {
  readonly watch: number;
  readonly mask: number;
  /** joins the two halves of a rename, else 0 */
  readonly cookie: number;
  /** one byte in each character; empty for the watched thing itself */
  readonly name: string;
}

// struct inotify_event without its name, in the byte order of all machines that this runs on
const HEAD = 16;
const END = Buffer.alloc(1);

type Item = InotifyEvent | { readonly reached: () => void };

/**
 * One inotify instance, through the native `watch` applet; watch.c has its protocol. It is read only when somebody asks
 * for more: who is slow makes the kernel's queue overflow, which it tells, and no memory grows.
 *
 * One caller at a time may be in `add`, `settle` and `wait`, because all of them read.
 */
export class Inotify {
  /** resolves when the applet has ended, to its exit code; 128 when it has none */
  readonly exitCode: Promise<number>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #output: AsyncIterator<Buffer>;
  /** what waits for an answer, in the order of the requests */
  readonly #requests: ((answer: number) => void)[] = [];
  readonly #items: Item[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(native: string) {
    this.#child = spawn(native, ['watch'], { stdio: ['pipe', 'pipe', 'ignore'], env: {}, cwd: '/' });
    this.exitCode = new Promise((resolve) => {
      this.#child.on('error', () => resolve(128));
      this.#child.on('exit', (code) => resolve(code ?? 128));
    });
    this.#child.stdin.on('error', () => {});
    this.#output = this.#child.stdout[Symbol.asyncIterator]();
  }

  /**
   * Watches folders, or watches them for other events.
   * @returns for each the number of its watch, or a negative system error
   */
  async add(mask: number, paths: readonly Buffer[]): Promise<number[]> {
    const watches: number[] = [];
    for (const _ of paths) this.#requests.push((watch) => void watches.push(watch));
    this.#child.stdin.write(Buffer.concat(paths.flatMap((path) => [Buffer.from(`${mask} `), path, END])));
    while (watches.length < paths.length && (await this.#read()));
    return watches;
  }

  remove(watch: number): void {
    this.#ask(`0 ${watch}`, () => {});
  }

  /** Returns when all that has happened until now is known. */
  async settle(): Promise<void> {
    let settled = false;
    this.#ask('0 0', () => {
      settled = true;
    });
    while (!settled && (await this.#read()));
  }

  /** Calls back when all that has happened until now was taken, and somebody waits for more. */
  mark(reached: () => void): void {
    this.#ask('0 0', () => void this.#items.push({ reached }));
  }

  /** Whether such an event waits. */
  queued(matches: (event: InotifyEvent) => boolean): boolean {
    return this.#items.some((item) => 'mask' in item && matches(item));
  }

  /** The next event, if it is known and there is no mark before it. */
  take(): InotifyEvent | undefined {
    const [item] = this.#items;
    if (item === undefined || 'reached' in item) return undefined;
    this.#items.shift();
    return item;
  }

  /** Reaches the marks that are next and returns when there is an event to take; false when the applet has ended. */
  async wait(): Promise<boolean> {
    for (;;) {
      const [item] = this.#items;
      if (item === undefined) {
        if (!(await this.#read())) return false;
      } else if ('reached' in item) {
        this.#items.shift();
        item.reached();
      } else {
        return true;
      }
    }
  }

  close(): void {
    this.#ended = true;
    this.#child.kill('SIGKILL');
  }

  #ask(request: string, answered: (answer: number) => void): void {
    this.#requests.push(answered);
    this.#child.stdin.write(`${request}\0`);
  }

  /** Reads once; false at the end. */
  async #read(): Promise<boolean> {
    if (this.#ended) return false;
    const piece = await this.#output.next().catch(() => undefined);
    if (piece === undefined || piece.done === true) {
      this.#ended = true;
      return false;
    }
    let bytes = this.#rest.length === 0 ? piece.value : Buffer.concat([this.#rest, piece.value]);
    while (bytes.length >= HEAD) {
      const size = HEAD + bytes.readUInt32LE(12);
      if (bytes.length < size) break;
      this.#take(bytes.subarray(0, size));
      bytes = bytes.subarray(size);
    }
    this.#rest = bytes;
    return true;
  }

  #take(record: Buffer): void {
    const watch = record.readInt32LE(0);
    const mask = record.readUInt32LE(4);
    if (mask === 0) {
      this.#requests.shift()?.(watch);
      return;
    }
    const end = record.indexOf(0, HEAD);
    const name = record.toString('latin1', HEAD, end < 0 ? record.length : end);
    this.#items.push({ watch, mask, cookie: record.readUInt32LE(8), name });
  }
}
