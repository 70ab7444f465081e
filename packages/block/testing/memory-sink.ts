import type { BlobSink } from '../blob/sink.ts';

/** A sink whose bytes a test can look at. */
export function memorySink(): BlobSink & { bytes(): Buffer } {
  let content = Buffer.alloc(0);
  return {
    get size() {
      return content.length;
    },
    async append(bytes) {
      content = Buffer.concat([content, bytes]);
    },
    async patch(bytes, offset) {
      content.set(bytes, offset);
    },
    bytes: () => content,
  };
}
