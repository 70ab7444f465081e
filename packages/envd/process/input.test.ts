import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { collect, envelope, start, unary } from '../testing/rpc-client.ts';

let envd: TestEnvd;
before(async () => {
  envd = await testEnvd();
});
after(() => envd[Symbol.asyncDispose]());

const begin = async (cmd: string, args: string[] = [], request = {}) => {
  const frames = start(envd.url, cmd, args, request);
  const pid = (await frames.next()).value?.message.event?.start?.pid ?? 0;
  return { frames, pid, process: { pid } };
};
const send = (process: object, bytes: Uint8Array | string, kind = 'stdin') =>
  unary(envd.url, 'process.Process/SendInput', { process, input: { [kind]: Buffer.from(bytes).toString('base64') } });
const close = (process: object) => unary(envd.url, 'process.Process/CloseStdin', { process });

test('input arrives in order, and closing it is the end of file', async () => {
  const { frames, process } = await begin('cat');
  for (let i = 0; i < 50; i++) assert.equal((await send(process, `${i}\n`)).status, 200);
  assert.equal((await close(process)).status, 200);
  const result = await collect(frames);
  assert.equal(result.stdout, Array.from({ length: 50 }, (_, i) => `${i}\n`).join(''));
  assert.equal(result.end?.status, 'exit status 0');
});

test('much input arrives exactly', async () => {
  const { frames, process } = await begin('sha256sum');
  const hash = createHash('sha256');
  const piece = randomBytes(2 * 1024 * 1024);
  for (let i = 0; i < 12; i++) {
    piece.writeUInt32BE(i, 0);
    hash.update(piece);
    const { status } = await send(process, piece);
    assert.equal(status, 200);
  }
  await close(process);
  assert.equal((await collect(frames)).stdout, `${hash.digest('hex')}  -\n`);
});

test('senders wait for a process that does not read, and are told when it ends', async () => {
  const { frames, process } = await begin('sleep', ['30']);
  const piece = new Uint8Array(1024 * 1024);
  assert.equal((await send(process, piece)).status, 200, 'what fits into the buffer is taken at once');
  let settled = false;
  const waiting = send(process, piece).finally(() => {
    settled = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(settled, false);
  await unary(envd.url, 'process.Process/SendSignal', { process, signal: 'SIGNAL_SIGKILL' });
  assert.equal((await waiting).status, 500);
  await collect(frames);
});

test('input after the end of input, to a process without it, or of the wrong kind, is internal', async () => {
  const closed = await begin('sleep', ['30']);
  await close(closed.process);
  assert.equal((await close(closed.process)).status, 200, 'closing twice is fine');
  assert.equal((await send(closed.process, 'x')).body.code, 'internal');
  const without = await begin('sleep', ['30'], { stdin: false });
  assert.equal((await send(without.process, 'x')).body.code, 'internal');
  assert.equal((await close(without.process)).status, 200);
  assert.equal((await send(without.process, 'x', 'pty')).body.code, 'internal');
  for (const { frames, process } of [closed, without]) {
    await unary(envd.url, 'process.Process/SendSignal', { process, signal: 'SIGNAL_SIGKILL' });
    await collect(frames);
  }
});

test('a process that has closed its input does not break anything', async () => {
  const { frames, process } = await begin('/bin/bash', ['-c', 'exec 0<&-; sleep 0.5; echo fine']);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await send(process, 'x'.repeat(100_000));
  assert.equal((await collect(frames)).stdout, 'fine\n');
  assert.equal((await fetch(`${envd.url}/health`)).status, 204);
});

test('StreamInput feeds a process over one call', async () => {
  const { frames, process } = await begin('cat');
  const data = (text: string) => ({ data: { input: { stdin: btoa(text) } } });
  const body = Buffer.concat([{ start: { process } }, data('a'), { keepalive: {} }, data('b')].map((m) => envelope(m)));
  const response = await fetch(`${envd.url}/process.Process/StreamInput`, {
    method: 'POST',
    headers: { 'content-type': 'application/connect+json', 'connect-protocol-version': '1' },
    body: new Uint8Array(body),
  });
  assert.equal(response.status, 200);
  await response.text();
  await close(process);
  assert.equal((await collect(frames)).stdout, 'ab');
});
