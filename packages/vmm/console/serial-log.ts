import { mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { printableTail } from './printable-tail.ts';

/** The most that a serial log takes on disk. */
export const MAX_SERIAL_LOG = 512 * 1024;

/** A file with the newest output of a console. Bounded: when full, the older half goes. */
export class SerialLog {
  readonly #path: string;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  /** Adds to the file. Calls may overlap; they are written in their order. */
  append(data: Uint8Array): Promise<void> {
    const written = this.#queue.then(() => this.#write(data));
    this.#queue = written.catch(() => {});
    return written;
  }

  /** The last lines, printable characters only, since they end up in messages and on terminals. */
  async lastLines(count: number): Promise<string> {
    await this.#queue;
    return printableTail(await readTail(this.#path, 16 * 1024), count);
  }

  async #write(data: Uint8Array): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    const tail = data.subarray(-MAX_SERIAL_LOG / 2);
    {
      await using file = await open(this.#path, 'a', 0o600);
      if ((await file.stat()).size + tail.length <= MAX_SERIAL_LOG) return file.appendFile(tail);
    }
    const kept = await readTail(this.#path, MAX_SERIAL_LOG / 2);
    const temporary = `${this.#path}.new`;
    {
      await using file = await open(temporary, 'w', 0o600);
      await file.writeFile(Buffer.concat([kept, tail]));
    }
    await rename(temporary, this.#path);
  }
}

async function readTail(path: string, length: number): Promise<Buffer> {
  try {
    await using file = await open(path, 'r');
    const { size } = await file.stat();
    const start = Math.max(0, size - length);
    const buffer = Buffer.alloc(size - start);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
    return buffer.subarray(0, bytesRead);
  } catch {
    return Buffer.alloc(0);
  }
}
