import type { Logger } from '../observability/logger.ts';

/** Where downloads and their apt state are kept, and how long work is reported and cancelled. */
export interface DebianOptions {
  /** private folder for apt's lists and archives; the host's own apt state is only read */
  readonly workDir: string;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/** A Debian suite relative to the host's release: `bookworm`, `bookworm-backports`, … */
export type Suite = string;

/** A package file fetched and verified by apt. */
export interface DebFile {
  readonly name: string;
  readonly version: string;
  readonly path: string;
}
