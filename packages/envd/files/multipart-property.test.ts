import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import fc from 'fast-check';
import { receiveMultipart } from './multipart.ts';

const BOUNDARY = '-b';

async function receive(pieces: readonly Buffer[]): Promise<(readonly [string | undefined, string])[]> {
  const request = { headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` } } as IncomingMessage;
  const parts: (readonly [string | undefined, string])[] = [];
  await receiveMultipart(request, Readable.from(pieces), async (filename, content) => {
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk);
    parts.push([filename, Buffer.concat(chunks).toString('latin1')]);
  });
  return parts;
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return places
    .slice(1)
    .map((end, index) => bytes.subarray(places[index], end))
    .filter((piece) => piece.length > 0);
}

// Content that looks like the edge of a part, and is none.
const content = fc
  .array(
    fc.oneof(
      fc.constantFrom('\r\n', '\r', '\n', '--', '\r\n--', '-b', '\r\n---', '\0', '\xff'),
      fc.string({ maxLength: 8 }),
    ),
    {
      maxLength: 12,
    },
  )
  .map((pieces) => pieces.join(''))
  .filter((text) => !`\r\n${text}\r\n`.includes(`\r\n--${BOUNDARY}`) && [...text].every((c) => c.charCodeAt(0) < 256));
// What browsers and SDKs write as it is; quotes and line ends they encode.
const filename = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((name) => !/["\\%]|\p{Cc}/u.test(name) && name.isWellFormed() && name.trim() === name);

test('a form of any content comes out whole, however it is cut', async () => {
  const parts = fc.array(fc.record({ filename, content }), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(parts, fc.array(fc.nat(), { maxLength: 12 }), async (files, cuts) => {
      const form = Buffer.concat([
        ...files.map((file) =>
          Buffer.concat([
            Buffer.from(
              `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${file.filename}"\r\n\r\n`,
            ),
            Buffer.from(`${file.content}\r\n`, 'latin1'),
          ]),
        ),
        Buffer.from(`--${BOUNDARY}--\r\n`),
      ]);
      assert.deepEqual(
        await receive(cutAt(form, cuts)),
        files.map((file) => [file.filename, file.content]),
      );
    }),
  );
});

test('bytes that are no form are refused or read, and never wait for more', async () => {
  const noise = fc.array(
    fc.oneof(
      fc.constantFrom(
        `--${BOUNDARY}\r\n`,
        `--${BOUNDARY}--\r\n`,
        '\r\n\r\n',
        'Content-Disposition: form-data; name="file"; filename="x"\r\n',
        'Content-Disposition: form-data; name="file"',
        'content-type: \r\n',
      ),
      fc.string({ maxLength: 20 }),
    ),
    { maxLength: 10 },
  );
  await fc.assert(
    fc.asyncProperty(noise, fc.array(fc.nat(), { maxLength: 5 }), async (pieces, cuts) => {
      try {
        await receive(cutAt(Buffer.from(pieces.join('')), cuts));
      } catch (error) {
        assert.ok(error instanceof AenvError && error.status === 400, String(error));
      }
    }),
  );
});
