import type { QmpClient } from './qmp/client.ts';
import { isRecord } from './qmp/message.ts';

export const CONSOLE_RING = 'console';

/** Bytes that QEMU keeps of the serial console, a power of two. */
export const CONSOLE_RING_SIZE = 128 * 1024;

/**
 * Takes out what the guest printed since the last time, at most the newest `CONSOLE_RING_SIZE` bytes.
 * @throws AenvError `vm_died`
 */
export async function drainConsole(qmp: QmpClient, timeoutMs: number): Promise<Buffer> {
  // Hostile guests print bytes that are no UTF-8, hence base64.
  const args = { device: CONSOLE_RING, size: CONSOLE_RING_SIZE, format: 'base64' };
  const answer = await qmp.execute('ringbuf-read', args, timeoutMs);
  if (typeof answer === 'string') return Buffer.from(answer, 'base64');
  return isRecord(answer) && typeof answer.data === 'string' ? Buffer.from(answer.data, 'base64') : Buffer.alloc(0);
}
