import type { LogFields, Logger } from '@aenv/platform/observability/logger.ts';
import { formatDuration, type Output } from './output.ts';

/**
 * Tells on a terminal what a long command does: a line when a step begins to take time, one for each thing that the
 * rooms log meanwhile, and one with the time when it is done. Steps that are over at once print only the last line.
 */
export class Progress {
  readonly #output: Output;
  readonly #now: () => number;

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
  }

  /** Runs a step; its logger prints under the step's name. */
  async step<T>(name: string, work: (log: Logger) => Promise<T>): Promise<T> {
    const started = this.#now();
    const result = await work(this.logger(name));
    this.#output.err(`${name}: ready (${formatDuration(this.#now() - started)})`);
    return result;
  }

  /** A logger whose lines come out here, under the name of a step. */
  logger(step: string): Logger {
    return this.#logger(step, {});
  }

  #logger(step: string, own: LogFields): Logger {
    const print = (message: string, fields: LogFields = {}) => {
      const details = Object.entries({ ...own, ...fields })
        .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
        .join(' ');
      this.#output.err(`${step}: ${message}${details === '' ? '' : ` (${details})`}`);
    };
    return {
      debug() {},
      info: print,
      warn: (message, fields) => print(`warning: ${message}`, fields),
      error: (message, fields) => print(`error: ${message}`, fields),
      child: (fields) => this.#logger(step, { ...own, ...fields }),
    };
  }
}
