import type { ReadStream } from 'node:tty';

/**
 * Raw mode of the local terminal until disposed, and also when the process ends in another way: a terminal must never
 * be left without echo.
 */
export function rawMode(stdin: ReadStream): Disposable {
  const before = stdin.isRaw;
  const restore = () => {
    if (stdin.isTTY) stdin.setRawMode(before);
  };
  stdin.setRawMode(true);
  process.once('exit', restore);
  return {
    [Symbol.dispose]() {
      process.off('exit', restore);
      restore();
    },
  };
}
