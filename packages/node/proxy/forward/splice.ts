import type { Duplex } from 'node:stream';
import { breakSocket, destroyAfterFlush } from '../sockets/ends.ts';

/**
 * Joins two connections until both are closed. Bytes and their ends pass in both directions with back-pressure; an
 * abrupt end of one breaks the other. Once one direction has ended, the other one is cut when nothing moved in it for
 * `halfOpenMs`, so that a peer which never closes holds nothing.
 * @param done called once, when both are closed
 */
export function splice(a: Duplex, b: Duplex, halfOpenMs: number, done: () => void): void {
  let timer: NodeJS.Timeout | undefined;
  let open = 2;
  const cut = () => {
    a.destroy();
    b.destroy();
  };
  const onData = () => timer?.refresh();
  const join = (from: Duplex, to: Duplex) => {
    from.on('error', () => breakSocket(to));
    from.on('data', onData);
    from.once('end', () => {
      timer ??= setTimeout(cut, halfOpenMs);
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
    from.pipe(to);
  };
  join(a, b);
  join(b, a);
}
