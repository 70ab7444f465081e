import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { destroyAfterFlush } from '../sockets/ends.ts';
import type { Answer } from './answer.ts';

/**
 * Writes an answer on a socket that has no response object (upgrades, CONNECT, requests that could not be parsed) and
 * closes it. What the client still sends is read and dropped for `drainMs`, so that the answer is not lost to a reset.
 */
export function writeRawAnswer(socket: Duplex, answer: Answer, drainMs: number): void {
  socket.on('error', () => {});
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  let head = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\nDate: ${new Date().toUTCString()}\r\n`;
  for (let i = 0; i < answer.headers.length; i += 2) head += `${answer.headers[i]}: ${answer.headers[i + 1]}\r\n`;
  socket.write(`${head}Connection: close\r\n\r\n`, 'latin1');
  socket.end(answer.body);
  lingeringClose(socket, drainMs);
}

/** After the last write: waits for the client to close, at most `drainMs`. */
export function lingeringClose(socket: Duplex, drainMs: number): void {
  if (socket.readableEnded) {
    destroyAfterFlush(socket);
    return;
  }
  const timer = setTimeout(() => socket.destroy(), drainMs);
  socket.once('end', () => destroyAfterFlush(socket));
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
}
