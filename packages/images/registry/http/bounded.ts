import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { HttpResponse } from './transport.ts';

/**
 * The content of a small answer.
 * @throws AenvError `image_invalid` when it is larger than `max` bytes; `registry_unavailable` when it ends early
 */
export async function readBounded(response: HttpResponse, max: number, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response.chunks()) {
    size += chunk.length;
    if (size > max) throw new AenvError('image_invalid', `${what} is larger than ${max} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const MAX_ERROR = 64 * 1024;

/**
 * What an answer with an error says (distribution specification, "Error Codes"), for a message: `CODE: text`, printable
 * and short. Empty when it says nothing of the kind.
 */
export async function errorText(response: HttpResponse): Promise<string> {
  try {
    const body: unknown = JSON.parse((await readBounded(response, MAX_ERROR, 'error')).toString('utf8'));
    const first = member(member(body, 'errors'), '0');
    const parts = [member(first, 'code'), member(first, 'message')].filter((part) => typeof part === 'string');
    return printable(parts.join(': '));
  } catch {
    return '';
  }
}

/** Text of others in one line of a message. */
export function printable(text: string): string {
  return text
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 200);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
