import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/**
 * Reads a JSON body of at most `limit` bytes, however it is framed; the content type is not asked for. An empty body is
 * undefined.
 * @throws AenvError `body_too_large`, `invalid_request`
 */
export async function readJson(
  body: AsyncIterable<Uint8Array> | null,
  headers: Headers,
  limit: number,
): Promise<unknown> {
  const tooLarge = () => new AenvError('body_too_large', `body: larger than ${limit} bytes`);
  if (Number(headers.get('content-length') ?? 0) > limit) throw tooLarge();
  if (body === null) return undefined;

  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.byteLength;
      if (size > limit) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof AenvError) throw error;
    throw new AenvError('invalid_request', 'body: ended early', { cause: error });
  }
  return parseJson(Buffer.concat(chunks));
}

function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new AenvError('invalid_request', 'body: not valid UTF-8', { cause: error });
  }
  if (text.trim() === '') return undefined;
  try {
    // A member of this name is dropped silently by too much code to let it in; it may be spelt with escapes.
    return /__proto__|\\u/i.test(text) ? JSON.parse(text, refuseProto) : JSON.parse(text);
  } catch (error) {
    if (error instanceof AenvError) throw error;
    const why = error instanceof Error ? error.message.slice(0, 200) : '';
    throw new AenvError('invalid_request', `body: not valid JSON: ${why}`, { cause: error });
  }
}

function refuseProto(name: string, value: unknown): unknown {
  if (name === '__proto__') throw new AenvError('invalid_request', 'body: a member must not be named __proto__');
  return value;
}
