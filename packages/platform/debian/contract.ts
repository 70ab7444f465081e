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

export interface DownloadRequest {
  readonly suite: Suite;
  /** fetched in any case, also when the host has them installed */
  readonly packages: readonly string[];
  /** also fetch the dependencies that the host's dpkg status lacks; recommended packages never */
  readonly withDependencies: boolean;
}

/** A package file fetched and verified by apt. */
export interface DebFile {
  readonly name: string;
  readonly version: string;
  readonly path: string;
}

/** What a suite says about the version of a package that it would give. */
export interface PackageRecord {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** the Depends field as it is, empty when absent (deb-control(5)) */
  readonly depends: string;
}
