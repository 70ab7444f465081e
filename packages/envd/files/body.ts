import type { IncomingMessage } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/**
 * The body as the client meant it. It fails when the client goes away before the end of it.
 * @throws AenvError `invalid_request` for an encoding that is not served
 */
export function decodedBody(request: IncomingMessage): Readable {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding === 'identity') return request;
  if (encoding !== 'gzip') {
    throw new AenvError('invalid_request', `content encoding '${encoding}' is not served; use gzip or none`);
  }
  return pipeline(request, createGunzip(), (error) => {
    // Whoever reads sees the error; the rest of a request that is no gzip is not needed.
    if (error) request.resume();
  });
}
