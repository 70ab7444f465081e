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
    return `${this.#label}  ${size(this.#bytes)}  ${size(rate)}/s`;
  }
}

function size(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  if (bytes < 1e9) return `${(bytes / 1e6).toFixed(1)} MB`;
  return `${(bytes / 1e9).toFixed(2)} GB`;
}
