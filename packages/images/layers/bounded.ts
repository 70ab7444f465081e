import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** How much a layer may grow when it is unpacked. */
export interface Expansion {
  /** bytes that are always allowed: honest sparse files shrink a thousandfold */
  readonly free: number;
  /** bytes on top for each stored byte */
  readonly ratio: number;
}

const DEFAULT_EXPANSION: Expansion = { free: 16 * 2 ** 30, ratio: 200 };

/**
 * Passes unpacked data on as long as it is not out of all proportion.
 * @param storedBytes size of the blob
 * @throws AenvError `image_invalid`
 */
export async function* bounded(
  unpacked: AsyncIterable<Buffer>,
  storedBytes: number,
  { free, ratio }: Expansion = DEFAULT_EXPANSION,
): AsyncGenerator<Buffer> {
  const most = free + storedBytes * ratio;
  let seen = 0;
  for await (const chunk of unpacked) {
    seen += chunk.length;
    if (seen > most) {
      throw new AenvError('image_invalid', `a layer of ${storedBytes} bytes unpacks to more than ${most} bytes`);
    }
    yield chunk;
  }
}
