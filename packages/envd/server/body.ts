import type { IncomingMessage } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/**
 * Reads a JSON body of at most `limit` bytes; an empty one is undefined.
 * @throws AenvError `body_too_large`, `invalid_request`
 */
export async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > limit) throw new AenvError('body_too_large', `the body is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch (error) {
    throw new AenvError('invalid_request', 'the body is not valid JSON', { cause: error });
  }
}
