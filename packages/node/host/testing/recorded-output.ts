import type { Output } from '../terminal/output.ts';

/** Keeps what a command printed. */
export class RecordedOutput implements Output {
  readonly outLines: string[] = [];
  readonly errLines: string[] = [];

  out(line: string): void {
    this.outLines.push(line);
  }

  err(line: string): void {
    this.errLines.push(line);
  }

  get text(): string {
    return [...this.outLines, ...this.errLines].join('\n');
  }
}
