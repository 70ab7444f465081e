import { open } from 'node:fs/promises';
import { stripVTControlCharacters } from 'node:util';

/** Read at most in one look; a guest that writes more than this loses the middle of it here, not in the file. */
const MAX_READ = 16 * 1024;
const MAX_LINE = 1000;

/** Follows the console log of a VM, which the guest fills as it likes. */
export class ConsoleTail {
  readonly #path: string;
  #offset = 0;
  #rest = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** The lines that have come since the last call, without control characters; none when there is no such file. */
  async read(): Promise<string[]> {
    const text = this.#rest + (await this.#bytes());
    const lines = text.split(/\r?\n/);
    this.#rest = (lines.pop() ?? '').slice(-MAX_LINE);
    return lines.map(printable).filter((line) => line !== '');
  }

  async #bytes(): Promise<string> {
    let size: number;
    try {
      await using file = await open(this.#path, 'r');
      size = (await file.stat()).size;
      // A log that became shorter was begun anew.
      if (size < this.#offset) this.#offset = 0;
      if (size === this.#offset) return '';
      const from = Math.max(this.#offset, size - MAX_READ);
      const skipped = from > this.#offset;
      const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(size - from), position: from });
      this.#offset = from + bytesRead;
      const text = buffer.subarray(0, bytesRead).toString();
      if (!skipped) return text;
      this.#rest = '';
      // Whatever is before the first line end is a part of a line.
      return text.slice(text.indexOf('\n') + 1);
    } catch {
      return '';
    }
  }
}

function printable(line: string): string {
  // Colours and cursor movements first, then every other control character.
  const plain = stripVTControlCharacters(line).replaceAll(/\p{Cc}/gu, '');
  return plain.slice(0, MAX_LINE).trimEnd();
}
