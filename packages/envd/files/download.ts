import { constants, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, constants as zlibConstants } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { contentType } from './content-type.ts';
import { contentDisposition } from './disposition.ts';
import { chooseEncoding } from './encoding.ts';

const CHUNK = 256 * 1024;

/**
 * Answers with the content of a file, in the speed of the client.
 * @throws AenvError `path_invalid` for what is no regular file, `not_acceptable`; or the error of the system call
 */
export async function sendFile(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const encoding = chooseEncoding(request.headers['accept-encoding']);
  // Opening a fifo must not wait for its writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = await file.stat();
    if (stats.isDirectory()) throw new AenvError('path_invalid', `path '${path}' is a directory`);
    if (!stats.isFile()) throw new AenvError('path_invalid', `path '${path}' is not a regular file`);
    const headers: OutgoingHttpHeaders = {
      'content-type': contentType(path),
      'content-disposition': contentDisposition(posix.basename(path)),
      'last-modified': stats.mtime.toUTCString(),
      vary: 'Accept-Encoding',
    };
    if (encoding === 'gzip') await sendGzip(file, request, response, headers);
    else await sendPlain(file, stats, request, response, headers);
  } finally {
    await file.close();
  }
}

async function sendPlain(
  file: FileHandle,
  stats: Stats,
  request: IncomingMessage,
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
): Promise<void> {
  // Files of procfs and sysfs say that they are empty: only reading them tells.
  const first = stats.size === 0 ? await readOnce(file) : undefined;
  if (first === undefined || first.length === 0) headers['content-length'] = stats.size;
  response.writeHead(200, headers);
  if (request.method === 'HEAD' || first?.length === 0) {
    response.end();
    return;
  }
  if (first !== undefined) response.write(first);
  const options = { autoClose: false, highWaterMark: CHUNK };
  // What is appended meanwhile does not fit into the announced length.
  const range = first === undefined ? { start: 0, end: stats.size - 1 } : { start: first.length };
  await stream(file, { ...options, ...range }, stats.size, response);
}

async function stream(
  file: FileHandle,
  options: { start: number; end?: number; autoClose: boolean; highWaterMark: number },
  expected: number,
  response: ServerResponse,
): Promise<void> {
  const source = file.createReadStream(options);
  try {
    await pipeline(source, response, { end: false });
  } catch (error) {
    if (response.destroyed) return;
    throw error;
  }
  // A file that has become shorter must not look complete.
  if (options.end !== undefined && source.bytesRead < expected) response.destroy();
  else response.end();
}

async function sendGzip(
  file: FileHandle,
  request: IncomingMessage,
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
): Promise<void> {
  response.writeHead(200, { ...headers, 'content-encoding': 'gzip' });
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  const source = file.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK });
  try {
    await pipeline(source, createGzip({ level: zlibConstants.Z_BEST_SPEED }), response);
  } catch (error) {
    if (!response.destroyed) throw error;
  }
}

async function readOnce(file: FileHandle): Promise<Buffer> {
  const buffer = Buffer.alloc(CHUNK);
  const { bytesRead } = await file.read(buffer, 0, CHUNK, 0);
  return buffer.subarray(0, bytesRead);
}
