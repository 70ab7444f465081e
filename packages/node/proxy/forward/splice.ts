import type { Duplex } from 'node:stream';
import { breakSocket, destroyAfterFlush } from '../sockets/ends.ts';
import type { PassingBytes } from '../sockets/passing-bytes.ts';
import { watchStall } from '../sockets/stall.ts';

export interface SpliceLimits {
  /** `ms` without a byte after which the second direction is cut when the first one has ended */
  readonly halfOpenMs: number;
  /** `ms` that bytes may wait for a side that does not take them */
  readonly stalledMs: number;
}

/**
 * Joins two connections until both are closed. Bytes and their ends pass in both directions with back-pressure; an
 * abrupt end of one breaks the other. There is no limit for quiet connections.
 * @param done called once, when both are closed
 */
export function splice(a: Duplex, b: Duplex, limits: SpliceLimits, bytes: PassingBytes, done: () => void): void {
  let timer: NodeJS.Timeout | undefined;
  let open = 2;
  const cut = () => {
    a.destroy();
    b.destroy();
  };
  const onData = (chunk: Buffer) => {
    bytes.add(chunk.length);
    timer?.refresh();
  };
  const join = (from: Duplex, to: Duplex) => {
    from.on('error', () => breakSocket(to));
    from.on('data', onData);
    from.once('end', () => {
      timer ??= setTimeout(cut, limits.halfOpenMs);
    });
    from.once('close', () => {
      if (--open === 0) {
        clearTimeout(timer);
        done();
      } else if (!from.readableEnded) {
        breakSocket(to);
      } else {
        // What was read goes out still; nobody is left to take what comes.
        to.resume();
        destroyAfterFlush(to);
      }
    });
    watchStall(from, limits.stalledMs, cut);
    from.pipe(to);
  };
  join(a, b);
  join(b, a);
}
