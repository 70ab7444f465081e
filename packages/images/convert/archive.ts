import { bounded } from '../layers/bounded.ts';
import { decompress } from '../layers/decompress.ts';
import { requireDigest, verified } from '../oci/digest.ts';
import type { OciLayer } from '../oci/layout.ts';

/**
 * The archive in a layer. Both digests are checked: that of the blob as stored, by the layer, and that of the archive
 * inside, here.
 * @param onRead told how many bytes of the blob have been read so far
 */
export function archiveOf(
  layer: OciLayer,
  signal?: AbortSignal,
  onRead: (bytes: number) => void = () => {},
): AsyncIterable<Uint8Array> {
  const unpacked = bounded(decompress(counted(layer.open(signal), onRead)), layer.sizeBytes);
  return verified(unpacked, requireDigest(layer.diffId), undefined, `archive of layer ${layer.digest}`);
}

async function* counted(
  source: AsyncIterable<Uint8Array>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    onRead(bytes);
    yield chunk;
  }
}
