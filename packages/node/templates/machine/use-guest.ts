import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { exchange } from '../../sandboxes/envd-client/request.ts';

/** Makes use of a guest that is about to be captured. */
export type UseGuest = (address: string, signal: AbortSignal) => Promise<void>;

const CONNECT_MS = 5_000;
const CALL_MS = 20_000;
const ROUNDS = 2;

/** What clients do first. A root file system without these files or programs answers with errors, which is as good. */
const CALLS = [
  start({ cmd: '/bin/sh', args: ['-c', 'echo ok'] }),
  start(
    { cmd: '/bin/sh', args: ['-c', 'echo ok'] },
    {},
    { authorization: `Basic ${Buffer.from('root:').toString('base64')}` },
  ),
  start({ cmd: '/bin/true' }, { pty: { size: { cols: 80, rows: 24 } } }),
  unary('process.Process/List', {}),
  unary('filesystem.Filesystem/Stat', { path: '/tmp' }),
  unary('filesystem.Filesystem/ListDir', { path: '/tmp' }),
  { method: 'GET', path: '/files?path=/etc/passwd' },
] as const;

/**
 * Calls what clients call first, so that a guest which is continued has compiled it already: under emulation that takes
 * seconds.
 */
export const useGuestOverTcp: UseGuest = async (address, signal) => {
  for (let round = 0; round < ROUNDS; round++) {
    for (const call of CALLS) {
      try {
        await exchange(address, ENVD_PORT, { ...call, connectTimeoutMs: CONNECT_MS, timeoutMs: CALL_MS, signal });
      } catch {
        // It is nobody's call, so nobody misses the answer.
        signal.throwIfAborted();
      }
    }
  }
};

function unary(method: string, message: unknown) {
  return { method: 'POST', path: `/${method}`, body: message } as const;
}

/** A call of the streaming kind, in the envelope of the Connect protocol: flags, length (big-endian), message. */
function start(process: unknown, more: object = {}, headers: Readonly<Record<string, string>> = {}) {
  const json = Buffer.from(JSON.stringify({ process, ...more }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return {
    method: 'POST',
    path: '/process.Process/Start',
    headers: { 'content-type': 'application/connect+json', 'connect-protocol-version': '1', ...headers },
    body: Buffer.concat([head, json]),
  } as const;
}
