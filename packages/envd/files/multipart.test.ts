import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { receiveMultipart } from './multipart.ts';

const FORM = Buffer.from(
  '--b\r\nContent-Disposition: form-data; name="file"; filename="/dir/é.txt"\r\nContent-Type: text/plain\r\n\r\n' +
    'one\r\n--x\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="two"\r\n\r\n\r\n--b--\r\n',
);
const EXPECTED = [
  ['/dir/é.txt', 'one\r\n--x'],
  ['two', ''],
];

async function receive(body: Readable): Promise<(string | undefined)[][]> {
  const request = { headers: { 'content-type': 'multipart/form-data; boundary=b' } } as IncomingMessage;
  const parts: (string | undefined)[][] = [];
  await receiveMultipart(request, body, async (filename, content) => {
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk);
    parts.push([filename, Buffer.concat(chunks).toString()]);
  });
  return parts;
}

test('a form may be cut anywhere on its way', async () => {
  for (let cut = 0; cut <= FORM.length; cut++) {
    const body = Readable.from([FORM.subarray(0, cut), FORM.subarray(cut)].filter((piece) => piece.length > 0));
    assert.deepEqual(await receive(body), EXPECTED, `cut at ${cut}`);
  }
});

test('a form that ends too early is refused, wherever it ends', async () => {
  const whole = FORM.length - '\r\n'.length;
  for (let end = 0; end < whole; end++) {
    await assert.rejects(
      receive(Readable.from(end === 0 ? [] : [FORM.subarray(0, end)])),
      (error) => error instanceof AenvError && error.status === 400,
      `ends at ${end}`,
    );
  }
});

test('a body that fails is refused, wherever it fails', async () => {
  for (let end = 0; end < FORM.length; end += 7) {
    const body = new Readable({ read() {} });
    body.push(FORM.subarray(0, end));
    setImmediate(() => body.destroy(new Error('gone')));
    await assert.rejects(
      receive(body),
      (error) => error instanceof AenvError && error.status === 400,
      `fails at ${end}`,
    );
  }
});

test('a handler that fails ends the upload with its own error, and the rest of the body is not waited for', async () => {
  const request = { headers: { 'content-type': 'multipart/form-data; boundary=b' } } as IncomingMessage;
  const failing = receiveMultipart(request, Readable.from([FORM]), async (_filename, content) => {
    content.resume();
    throw new AenvError('no_space', 'full');
  });
  await assert.rejects(failing, { code: 'no_space' });
});
