import { constants, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, constants as zlibConstants } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { sendJson } from '../server/answer.ts';
import { isConditional, type Selection, select } from './conditions.ts';
import { contentType } from './content-type.ts';
import { contentDisposition } from './disposition.ts';
import { chooseEncoding } from './encoding.ts';

const CHUNK = 256 * 1024;

/**
 * Answers with the content of a file, or the part of it that the request asks for, in the speed of the client.
 * @throws AenvError `path_invalid` for what is no regular file, `not_acceptable`; or the error of the system call
 */
export async function sendFile(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const encoding = isConditional(request.headers) ? 'identity' : chooseEncoding(request.headers['accept-encoding']);
  // Opening a fifo must not wait for its writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = await file.stat();
    if (stats.isDirectory()) throw new AenvError('path_invalid', `path '${path}' is a directory`);
    if (!stats.isFile()) throw new AenvError('path_invalid', `path '${path}' is not a regular file`);
    const validators = { etag: etagOf(stats), modified: stats.mtimeMs, size: stats.size };
    const headers: OutgoingHttpHeaders = {
      'content-type': contentType(path),
      'content-disposition': contentDisposition(posix.basename(path)),
      'last-modified': stats.mtime.toUTCString(),
      etag: validators.etag,
      'accept-ranges': 'bytes',
      vary: 'Accept-Encoding',
    };
    if (encoding === 'gzip') return await sendGzip(file, request, response, headers);
    await sendSelection(file, select(request.headers, validators), stats.size, request, response, headers);
  } finally {
    await file.close();
  }
}

async function sendSelection(
  file: FileHandle,
  selection: Selection,
  size: number,
  request: IncomingMessage,
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
): Promise<void> {
  switch (selection.kind) {
    case 'whole':
      return sendWhole(file, size, request, response, headers);
    case 'range': {
      const { start, end } = selection;
      response.writeHead(206, {
        ...headers,
        'content-range': `bytes ${start}-${end}/${size}`,
        'content-length': end - start + 1,
      });
      if (request.method === 'HEAD') response.end();
      else await stream(file, { start, end }, response);
      return;
    }
    case 'not-modified':
      response.writeHead(304, { etag: headers.etag, 'last-modified': headers['last-modified'], vary: headers.vary });
      response.end();
      return;
    case 'failed':
      return sendJson(response, 412, { code: 412, message: 'a condition of the request does not hold' });
    case 'unsatisfiable':
      return sendJson(
        response,
        416,
        { code: 416, message: `the range lies outside of ${size} bytes` },
        { 'content-range': `bytes */${size}` },
      );
  }
}

async function sendWhole(
  file: FileHandle,
  size: number,
  request: IncomingMessage,
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
): Promise<void> {
  // Files of procfs and sysfs say that they are empty: only reading them tells.
  const first = size === 0 ? await readOnce(file) : undefined;
  if (first === undefined || first.length === 0) headers['content-length'] = size;
  response.writeHead(200, headers);
  if (request.method === 'HEAD' || first?.length === 0) {
    response.end();
    return;
  }
  if (first !== undefined) response.write(first);
  // What is appended meanwhile does not fit into the announced length.
  await stream(file, first === undefined ? { start: 0, end: size - 1 } : { start: first.length }, response);
}

async function stream(
  file: FileHandle,
  range: { readonly start: number; readonly end?: number },
  response: ServerResponse,
): Promise<void> {
  const source = file.createReadStream({ ...range, autoClose: false, highWaterMark: CHUNK });
  try {
    await pipeline(source, response, { end: false });
  } catch (error) {
    if (response.destroyed) return;
    throw error;
  }
  // A file that has become shorter must not look complete.
  if (range.end !== undefined && source.bytesRead < range.end - range.start + 1) response.destroy();
  else response.end();
}

async function sendGzip(
  file: FileHandle,
  request: IncomingMessage,
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
): Promise<void> {
  // Another representation: the validators and ranges are those of the bytes on the disk.
  const { etag: _etag, 'accept-ranges': _ranges, ...rest } = headers;
  response.writeHead(200, { ...rest, 'content-encoding': 'gzip' });
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

/** Changes whenever the content may have changed: inode, size and time of the last change to the microsecond. */
function etagOf(stats: Stats): string {
  return `"${stats.ino.toString(36)}-${stats.size.toString(36)}-${Math.round(stats.mtimeMs * 1e3).toString(36)}"`;
}
