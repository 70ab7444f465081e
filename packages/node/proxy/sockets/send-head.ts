import type { OutgoingMessage } from 'node:http';

const NOTHING = Buffer.alloc(0);

/**
 * Sends the header lines now, before any of the body. Unlike `flushHeaders()`, which writes them as UTF-8, this keeps
 * bytes outside ASCII as they came: with a buffer behind them Node writes header lines as latin1.
 */
export function sendHead(message: OutgoingMessage): void {
  message.write(NOTHING);
}
