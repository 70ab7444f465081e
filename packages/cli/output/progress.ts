import { bytes } from './bytes.ts';

/**
 * A line on stderr that tells how far a transfer is; only on a terminal. Rewritten at most ten times a second.
 */
export class Progress {
  readonly #label: string;
  readonly #visible: boolean;
  readonly #start = performance.now();
  #bytes = 0;
  #drawn = 0;

  constructor(label: string, stream: { isTTY?: boolean } = process.stderr) {
    this.#label = label;
    this.#visible = stream.isTTY === true;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    const now = performance.now();
    if (this.#visible && now - this.#drawn > 100) {
      this.#drawn = now;
      process.stderr.write(`\r\x1b[K${this.#text()}`);
    }
  }

  end(): void {
    if (this.#visible) process.stderr.write(`\r\x1b[K${this.#text()}\n`);
  }

  #text(): string {
    const seconds = (performance.now() - this.#start) / 1000;
    const rate = seconds > 0 ? this.#bytes / seconds : 0;
    return `${this.#label}  ${bytes(this.#bytes)}  ${bytes(rate)}/s`;
  }
}
