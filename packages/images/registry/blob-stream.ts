import { createHash } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { requireDigest } from '../oci/digest.ts';
import { isTransient } from './http/failures.ts';
import type { HttpResponse } from './http/transport.ts';
import { type RetryPolicy, waitBefore } from './retry.ts';
import type { Session } from './session.ts';

/** What a blob is expected to be. */
export interface BlobName {
  readonly digest: string;
  /** bytes */
  readonly size: number;
}

export interface StreamOptions {
  readonly clock: Clock;
  readonly policy: RetryPolicy;
  readonly signal?: AbortSignal | undefined;
}

/** So much has to arrive between two failures for the first one to be forgotten. */
const PROGRESS = 64 * 1024;

/**
 * The bytes of a blob, resumed by Range where a connection breaks, on the next host where one fails for good. The reader
 * must not make use of them before the end is reached, since only there the digest is compared.
 * @param sessions hosts that have the blob, best first
 * @throws AenvError `digest_mismatch` with both digests or sizes; what the last host has failed with
 */
export async function* streamBlob(
  sessions: readonly Session[],
  blob: BlobName,
  options: StreamOptions,
): AsyncGenerator<Buffer> {
  const digest = requireDigest(blob.digest);
  const hash = createHash(digest.algorithm);
  const hosts = new Hosts(sessions);
  let received = 0;
  let forgiven = 0;
  let failures = 0;
  while (received < blob.size) {
    const session = hosts.current();
    try {
      for await (const chunk of partsFrom(session, blob, received, options.signal)) {
        received += chunk.length;
        if (received > blob.size) throw sizeMismatch(session, blob, `more than ${blob.size}`);
        hash.update(chunk);
        yield chunk;
      }
      if (received < blob.size) throw ended(session, blob, received);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!isTransient(error)) {
        hosts.drop(session, error);
        continue;
      }
      if (received - forgiven >= PROGRESS) failures = 0;
      forgiven = received;
      if (++failures >= options.policy.attempts) throw error;
      hosts.rotate();
      await waitBefore(failures, error, options);
    }
  }
  const hex = hash.digest('hex');
  if (hex !== digest.hex) {
    const found = `${digest.algorithm}:${hex}`;
    throw new AenvError(
      'digest_mismatch',
      `blob from ${hosts.current().host} has the digest ${found} instead of ${blob.digest}`,
    );
  }
}

/** The hosts that are left. */
class Hosts {
  #left: readonly Session[];

  constructor(sessions: readonly Session[]) {
    this.#left = sessions;
  }

  current(): Session {
    const [first] = this.#left;
    if (first === undefined) throw new RangeError('no host to read from');
    return first;
  }

  rotate(): void {
    this.#left = [...this.#left.slice(1), ...this.#left.slice(0, 1)];
  }

  /** @throws the error, when no other host is left, or none would do better */
  drop(session: Session, error: unknown): void {
    this.#left = this.#left.filter((one) => one !== session);
    if (this.#left.length === 0 || (error instanceof AenvError && error.code === 'digest_mismatch')) throw error;
  }
}

async function* partsFrom(
  session: Session,
  blob: BlobName,
  offset: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const headers = offset === 0 ? {} : { range: `bytes=${offset}-` };
  const response = await session.get(`blobs/${blob.digest}`, { headers, signal });
  // Without the header the whole blob comes, also where a part was asked for: what is known is passed over.
  let skip = response.status === 206 ? offset - rangeStart(response, blob, session) : offset;
  if (skip < 0)
    throw new AenvError('registry_unavailable', `${session.host}: answers with another range than was asked for`);
  for await (const chunk of response.chunks()) {
    const part = chunk.subarray(skip);
    skip -= chunk.length - part.length;
    if (part.length > 0) yield part;
  }
}

function rangeStart(response: HttpResponse, blob: BlobName, session: Session): number {
  const range = contentRange(response);
  if (range === undefined)
    throw new AenvError('registry_unavailable', `${session.host}: answers with a range that it does not name`);
  if (range.total !== undefined && range.total !== blob.size) throw sizeMismatch(session, blob, String(range.total));
  return range.start;
}

/** A Content-Range header of bytes (RFC 9110, section 14.4). */
export function contentRange(
  response: HttpResponse,
): { readonly start: number; readonly end: number; readonly total: number | undefined } | undefined {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(response.header('content-range') ?? '');
  const [, start, end, total] = match ?? [];
  if (start === undefined || end === undefined) return undefined;
  return { start: Number(start), end: Number(end), total: total === '*' ? undefined : Number(total) };
}

export function sizeMismatch(session: Session, blob: BlobName, found: string): AenvError {
  return new AenvError(
    'digest_mismatch',
    `blob ${blob.digest} from ${session.host} has ${found} bytes instead of ${blob.size}`,
  );
}

function ended(session: Session, blob: BlobName, received: number): AenvError {
  return new AenvError(
    'registry_unavailable',
    `${session.host}: blob ${blob.digest} ended after ${received} of ${blob.size} bytes`,
  );
}
