import type { BlobSource } from '@aenv/block/blob/contract.ts';
import type { TraceRecord } from './format.ts';

const AT_ONCE = 16;
const PIECE = 1024 * 1024;

/**
 * Reads what a trace names, so that it is in the cache when a guest asks for it. Records that do not fit the layers are
 * passed over: a trace is a hint.
 * @param layers lowest first, opened with the priority `background`
 * @throws what the layers throw; the signal's reason
 */
export async function replayTrace(
  records: readonly TraceRecord[],
  layers: readonly BlobSource[],
  signal: AbortSignal,
): Promise<void> {
  const pieces = piecesOf(records, layers);
  const work = async () => {
    for (const { layer, offset, length } of pieces) {
      signal.throwIfAborted();
      const target = Buffer.allocUnsafe(length);
      if (!layer.readSync(target, offset)) await layer.read(target, offset, signal);
    }
  };
  const failed = (await Promise.allSettled(Array.from({ length: AT_ONCE }, work))).find(
    (result) => result.status === 'rejected',
  );
  if (failed !== undefined) throw failed.reason;
}

function* piecesOf(records: readonly TraceRecord[], layers: readonly BlobSource[]) {
  for (const { layer: number, offset, length } of records) {
    const layer = layers[number];
    if (layer === undefined || offset >= layer.size) continue;
    const end = Math.min(layer.size, offset + length);
    for (let at = offset; at < end; at += PIECE) yield { layer, offset: at, length: Math.min(PIECE, end - at) };
  }
}
