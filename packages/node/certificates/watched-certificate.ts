import { type FSWatcher, watch } from 'node:fs';
import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { type PairFiles, readPair } from './read-pair.ts';
import type { CertificateSource, KeyPair } from './source.ts';

export interface WatchOptions {
  readonly log: Logger;
  /** quiet time of `ms` after a change before the files are read: certificate and key are rarely written in one step */
  readonly settleMs?: number;
  /** time of `ms` after which the files are read anyhow, for file systems that tell nothing */
  readonly rereadMs?: number;
}

/**
 * A certificate in files, read again when they change. The folders are watched rather than the files, because tools that
 * renew certificates put new files or links in their place. A pair that cannot be used is logged and not taken.
 */
export class WatchedCertificate implements CertificateSource {
  readonly #files: PairFiles;
  readonly #log: Logger;
  readonly #settleMs: number;
  readonly #watchers: FSWatcher[];
  readonly #listeners = new Set<(pair: KeyPair) => void>();
  readonly #reread: NodeJS.Timeout;
  #pair: KeyPair;
  #settling: NodeJS.Timeout | undefined;
  #reading = Promise.resolve();
  #complaint = '';
  #closed = false;

  private constructor(files: PairFiles, pair: KeyPair, { log, settleMs = 300, rereadMs = 60_000 }: WatchOptions) {
    this.#files = files;
    this.#pair = pair;
    this.#log = log;
    this.#settleMs = settleMs;
    const folders = new Set([dirname(files.cert), dirname(files.key)]);
    this.#watchers = [...folders].flatMap((folder) => this.#watch(folder));
    this.#reread = setInterval(() => this.#enqueue(), rereadMs);
    this.#reread.unref();
  }

  /** @throws AenvError `config_invalid` when the files cannot be used */
  static async open(files: PairFiles, options: WatchOptions): Promise<WatchedCertificate> {
    const { cert, key, leaf } = await readPair(files);
    if (Date.parse(leaf.validTo) < Date.now()) {
      options.log.warn('the TLS certificate has expired', { file: files.cert, validTo: leaf.validTo });
    }
    return new WatchedCertificate(files, { cert, key }, options);
  }

  current(): KeyPair {
    return this.#pair;
  }

  onChange(listener: (pair: KeyPair) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Watches no longer. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const watcher of this.#watchers) watcher.close();
    clearTimeout(this.#settling);
    clearInterval(this.#reread);
    this.#listeners.clear();
    await this.#reading;
  }

  #watch(folder: string): FSWatcher[] {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#settle());
      watcher.on('error', (error) => this.#log.debug('a folder cannot be watched', { folder, error: error.message }));
      return [watcher];
    } catch (error) {
      // The host has no watches left; reading now and then still finds the change.
      this.#log.warn('the folder of the TLS certificate cannot be watched', { folder, error });
      return [];
    }
  }

  #settle(): void {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#enqueue(), this.#settleMs);
  }

  #enqueue(): void {
    this.#reading = this.#reading.then(() => this.#read());
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    try {
      const { cert, key, leaf } = await readPair(this.#files);
      this.#complaint = '';
      if (this.#closed || (cert === this.#pair.cert && key === this.#pair.key)) return;
      this.#pair = { cert, key };
      for (const listener of this.#listeners) listener(this.#pair);
      this.#log.info('the TLS certificate was replaced', { subject: leaf.subject, validTo: leaf.validTo });
    } catch (error) {
      const { code, message, remediation } = AenvError.from(error);
      // Once for each fault, not at every look.
      if (message === this.#complaint) return;
      this.#complaint = message;
      this.#log.error('the new TLS certificate cannot be used; the old one stays', {
        code,
        reason: message,
        remediation,
      });
    }
  }
}
