import { HOST_ONLY_PATHS } from '@aenv/contracts/envd/host-api.ts';

/**
 * All that a path of envd is made of: segments of unreserved characters, none of them `.` or `..`, none empty except
 * the last. Percent-encoding, double slashes, back-slashes and fragments do not occur in envd's API, so a request
 * that has them is refused rather than understood: two parsers that differ over a spelling are how guarded paths leak.
 */
const PLAIN_PATH = /^\/(?:(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+\/)*(?:(?!\.{1,2}$)[A-Za-z0-9._~-]+)?$/;

const hostOnly = new Set(HOST_ONLY_PATHS.map((path) => path.slice(1)));

/**
 * Whether a client may ask envd for this path (with its query). False for the host-only ones, in any case and with
 * anything behind them, and for every unusual spelling.
 */
export function isOpenEnvdPath(path: string): boolean {
  const query = path.indexOf('?');
  const plain = query === -1 ? path : path.slice(0, query);
  if (!PLAIN_PATH.test(plain)) return false;
  const first = plain.split('/', 2)[1] ?? '';
  return !hostOnly.has(first.toLowerCase());
}
