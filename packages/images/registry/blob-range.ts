import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type BlobName, contentRange, sizeMismatch } from './blob-stream.ts';
import type { Session } from './session.ts';

export interface RangeOptions {
  readonly signal?: AbortSignal | undefined;
  /** called with the bytes that are in the target, from its start */
  readonly onProgress?: (filled: number) => void;
}

/**
 * Reads `target.length` bytes of a blob at `offset`, in one request.
 * @throws AenvError `registry_unavailable`, also when the host does not serve ranges (`details.reason` is `no_ranges`);
 *   `digest_mismatch` when its blob has another size; what `Session.get` throws
 */
export async function readBlobRange(
  session: Session,
  blob: BlobName,
  target: Uint8Array,
  offset: number,
  options: RangeOptions = {},
): Promise<void> {
  if (target.length === 0) return;
  const end = offset + target.length - 1;
  const response = await session.get(`blobs/${blob.digest}`, {
    headers: { range: `bytes=${offset}-${end}` },
    signal: options.signal,
    reuseLocation: true,
  });
  if (response.status !== 206) {
    response.discard();
    throw new AenvError('registry_unavailable', `${session.host}: does not serve parts of a blob`, {
      details: { reason: 'no_ranges' },
    });
  }
  const range = contentRange(response);
  if (range?.total !== undefined && range.total !== blob.size) {
    response.discard();
    throw sizeMismatch(session, blob, String(range.total));
  }
  if (range === undefined || range.start !== offset || range.end !== end) {
    response.discard();
    throw new AenvError('registry_unavailable', `${session.host}: answers with another range than was asked for`);
  }
  // Only an answer that is as long as it should be is made use of before its end.
  const length = response.header('content-length');
  if (length !== undefined && length !== String(target.length)) {
    response.discard();
    throw wrongLength(session);
  }
  let filled = 0;
  for await (const chunk of response.chunks()) {
    if (filled + chunk.length > target.length) break;
    target.set(chunk, filled);
    filled += chunk.length;
    if (length !== undefined) options.onProgress?.(filled);
  }
  if (filled === target.length) return;
  throw wrongLength(session);
}

function wrongLength(session: Session): AenvError {
  return new AenvError(
    'registry_unavailable',
    `${session.host}: a part of a blob has not the length that it should have`,
  );
}
