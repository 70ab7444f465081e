import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** What a client keeps with a file. */
export type Metadata = Readonly<Record<string, string>>;

/** Where metadata is kept: xattr(7) leaves programs the names below `user.`. */
export const METADATA_PREFIX = 'user.e2b.';

const HEADER = 'x-metadata-';
// The kernel's limit of an attribute's name, and what ext4 has room for with one file.
const KEY_MAX = 255 - METADATA_PREFIX.length;
const TOTAL_MAX = 4096;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * The metadata of an upload: header `X-Metadata-KEY: VALUE`, keys in lower case. Of a header that comes several times the
 * first counts; one without a key is none.
 * @param rawHeaders names and values in turn, as node:http has them
 * @throws AenvError `invalid_request` for what is not printable ASCII, or is too long
 */
export function metadataOf(rawHeaders: readonly string[]): Metadata {
  const metadata: Record<string, string> = Object.create(null);
  let total = 0;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    const value = rawHeaders[index + 1] ?? '';
    const key = name.slice(HEADER.length);
    if (!name.startsWith(HEADER) || key === '' || key in metadata) continue;
    if (key.length > KEY_MAX) throw invalid(`key '${key}' is longer than ${KEY_MAX} bytes`);
    if (!PRINTABLE.test(key)) throw invalid(`key '${key}' is not printable ASCII`);
    if (!PRINTABLE.test(value)) throw invalid(`the value of '${key}' is not printable ASCII`);
    total += METADATA_PREFIX.length + key.length + value.length;
    metadata[key] = value;
  }
  if (total > TOTAL_MAX) {
    throw invalid(`${total} bytes of keys, each with '${METADATA_PREFIX}', and values are more than ${TOTAL_MAX}`);
  }
  return metadata;
}

function invalid(message: string): AenvError {
  return new AenvError('invalid_request', `invalid metadata: ${message}`);
}
