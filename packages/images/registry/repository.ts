import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { requireDigest } from '../oci/digest.ts';
import { type RangeOptions, readBlobRange } from './blob-range.ts';
import { type BlobName, streamBlob } from './blob-stream.ts';
import { type Document, getManifest, getSmallBlob } from './manifest.ts';
import { type RetryPolicy, withRetries } from './retry.ts';
import type { Session } from './session.ts';

export interface RepositoryOptions {
  /** mirrors in their order, at the end the registry itself */
  readonly sessions: readonly [...Session[], Session];
  readonly clock: Clock;
  readonly policy: RetryPolicy;
  readonly log: Logger;
}

/** Attempts at a mirror, behind which the registry itself is waiting. */
const MIRROR_ATTEMPTS = 2;

/** One repository, read from its registry or from a mirror of it. */
export class Repository {
  readonly #options: RepositoryOptions;

  constructor(options: RepositoryOptions) {
    this.#options = options;
  }

  /**
   * A manifest or an index by tag or by digest; a mirror that fails, whatever the reason, is passed over.
   * @throws AenvError as `getManifest`, from the registry itself
   */
  async manifest(name: string, signal?: AbortSignal): Promise<Document> {
    if (name.includes(':')) requireDigest(name);
    return this.#firstOf(
      (session, policy) =>
        withRetries(() => getManifest(session, name, signal), { clock: this.#options.clock, policy, signal }),
      signal,
    );
  }

  /** A JSON blob of at most 4 MiB, verified. */
  document(blob: BlobName, signal?: AbortSignal): Promise<Buffer> {
    return getSmallBlob(this.blob(blob, signal), blob);
  }

  /** The bytes of a blob: see `streamBlob`. */
  blob(blob: BlobName, signal?: AbortSignal): AsyncGenerator<Buffer> {
    const { sessions, clock, policy } = this.#options;
    return streamBlob(sessions, blob, { clock, policy, signal });
  }

  /** A part of a blob, in one attempt at each host: see `readBlobRange`. */
  range(blob: BlobName, target: Uint8Array, offset: number, options: RangeOptions = {}): Promise<void> {
    requireDigest(blob.digest);
    return this.#firstOf((session) => readBlobRange(session, blob, target, offset, options), options.signal);
  }

  async #firstOf<T>(
    action: (session: Session, policy: RetryPolicy) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const { sessions, policy, log } = this.#options;
    const mirrors = sessions.slice(0, -1);
    for (const session of mirrors) {
      try {
        return await action(session, { ...policy, attempts: Math.min(policy.attempts, MIRROR_ATTEMPTS) });
      } catch (error) {
        signal?.throwIfAborted();
        const { code, message } = AenvError.from(error);
        log.debug('mirror passed over', { host: session.host, code, message });
      }
    }
    const origin = sessions.at(-1);
    if (origin === undefined) throw new RangeError('no registry');
    return action(origin, policy);
  }
}
