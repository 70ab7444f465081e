import type { Readable } from 'node:stream';

/**
 * Calls `onStall` when a stream is held back by its receiver for `ms` without a pause. A socket that nobody reads tells
 * nothing of its peer, not even that it is gone, so without a limit both ends could be held for ever.
 */
export function watchStall(stream: Readable, ms: number, onStall: () => void): void {
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  stream.on('pause', () => {
    // Taking a stream off its receiver pauses it once more, after its end too.
    if (stream.destroyed || stream.readableEnded) return;
    timer ??= setTimeout(onStall, ms);
  });
  stream.on('resume', stop);
  stream.once('end', stop);
  stream.once('close', stop);
}
