import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import busboy from 'busboy';

// A part without a filename is text of a form and is kept in memory.
const FIELD_MAX = 16 * 1024 * 1024;
const PARTS_MAX = 10_000;
const HEADERS_MAX = 64;

/** Takes one part; the next one is not read before it returns. */
export type PartHandler = (filename: string | undefined, content: Readable) => Promise<void>;

/**
 * Reads a multipart/form-data body and hands over the parts that are named `file`, with their folders in the filename.
 * @param body the decoded body of the request
 * @throws AenvError `invalid_request`; whatever the handler throws
 */
export async function receiveMultipart(request: IncomingMessage, body: Readable, onFile: PartHandler): Promise<void> {
  const parser = createParser(request);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let work = Promise.resolve();
  let failed = false;
  const fail = (error: unknown) => {
    if (failed) return;
    failed = true;
    body.unpipe(parser);
    // The client sends on until it has read the answer; nobody needs the rest.
    body.resume();
    reject(error);
  };
  const enqueue = (filename: string | undefined, content: Readable) => {
    work = work.then(async () => {
      if (failed) content.resume();
      else await onFile(filename, content);
    });
    work.catch(fail);
  };
  parser.on('file', (name, content, { filename }) => {
    // It also fails while nobody reads it, when the form breaks off: whoever reads it then sees that.
    content.on('error', () => {});
    if (name === 'file') enqueue(filename === undefined ? undefined : decodeFilename(filename), content);
    else content.resume();
  });
  parser.on('field', (name, value, { valueTruncated }) => {
    if (name !== 'file') return;
    if (valueTruncated) fail(malformed(`a part without a filename is larger than ${FIELD_MAX} bytes`));
    else enqueue(undefined, Readable.from([Buffer.from(value)]));
  });
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(limit, () => fail(malformed(`there are more than ${PARTS_MAX} parts`)));
  }
  parser.on('error', (error) => fail(malformed(error instanceof Error ? error.message : 'malformed body', error)));
  parser.on('close', () => work.then(resolve, fail));
  body.on('error', (error) => fail(malformed('the body broke off', error)));
  body.on('close', () => {
    if (!body.readableEnded) fail(malformed('the body broke off'));
  });
  body.pipe(parser);
  await promise;
}

function createParser(request: IncomingMessage): busboy.Busboy {
  try {
    return busboy({
      headers: request.headers,
      preservePath: true,
      defParamCharset: 'utf8',
      limits: { fieldSize: FIELD_MAX, parts: PARTS_MAX, headerPairs: HEADERS_MAX },
    });
  } catch (error) {
    throw malformed(error instanceof Error ? error.message : 'malformed content type', error);
  }
}

/** Undoes what the form encoding of the HTML standard does to a quote and to line ends in a filename. */
function decodeFilename(filename: string): string {
  return filename.replace(/%0D|%0A|%22/gi, (code) => decodeURIComponent(code));
}

function malformed(message: string, cause?: unknown): AenvError {
  return new AenvError('invalid_request', `multipart body: ${message}`, { cause });
}
