import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Writes and waits while the reader is slow, so that output never piles up in memory. */
export async function writeAll(out: Writable, data: Uint8Array | string): Promise<void> {
  if (!out.write(data) && !out.destroyed) await once(out, 'drain');
}
