import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { heldBytes } from '../testing/memory.ts';
import { collect, start, stream, unary } from '../testing/rpc-client.ts';

const MIB = 1024 * 1024;
let envd: TestEnvd;
before(async () => {
  const output = { queueBytes: 256 * 1024, stalledMs: 700, stalledAloneMs: 1_300, quietMs: 100 };
  envd = await testEnvd({ processes: { output, keepEndedMs: 30_000 } });
});
after(() => envd[Symbol.asyncDispose]());

const SOAK = process.env.AENV_SOAK === '1';
const flood = (bytes: number) => ['-c', `head -c ${bytes} /dev/zero | tr '\\0' 'x'; exit 3`];

test('much output to a reader that takes its time: every byte, flat memory, the right exit code', async () => {
  const size = (SOAK ? 200 : 20) * 1000 * 1000;
  const frames = start(envd.url, '/bin/bash', flood(size), { stdin: false });
  let received = 0;
  let exitCode: number | undefined;
  let next = 5 * MIB;
  let peak = 0;
  const before = heldBytes();
  for await (const { message } of frames) {
    const text = message.event?.data?.stdout;
    if (text !== undefined) received += Buffer.byteLength(text, 'base64');
    exitCode = message.event?.end?.exitCode ?? exitCode;
    if (received > next) {
      next += 5 * MIB;
      await delay(20);
      // What the reader holds is in it as well: both ends are in this process.
      peak = Math.max(peak, heldBytes() - before);
    }
  }
  assert.equal(received, size);
  assert.equal(exitCode, 3);
  assert.ok(peak < 48 * MIB, `${peak} bytes are held`);
});

test('a process that nobody listens to never waits', async () => {
  const frames = start(envd.url, '/bin/bash', flood(5 * MIB), { stdin: false });
  const pid = (await frames.next()).value?.message.event?.start?.pid;
  await frames.return(undefined);
  const end = await collect(stream(envd.url, 'process.Process/Connect', { process: { pid } }));
  assert.equal(end.end?.exitCode, 3);
});

test('of two listeners one stops reading: the other gets all, and the stalled one is dropped', async () => {
  const script = 'sleep 0.4; head -c 10000000 /dev/zero | tr "\\0" x; exit 3';
  const first = start(envd.url, '/bin/bash', ['-c', script], { stdin: false });
  const pid = (await first.next()).value?.message.event?.start?.pid;
  const stalled = await openAndStall(pid ?? 0);
  const result = await collect(first);
  assert.equal(result.stdout.length, 10_000_000);
  assert.equal(result.end?.exitCode, 3);
  await stalled.body?.cancel();
});

test('the only listener stops reading for long: the process still comes to its end', async () => {
  const first = start(envd.url, '/bin/bash', ['-c', 'sleep 0.3; head -c 10000000 /dev/zero; exit 4'], { stdin: false });
  const pid = (await first.next()).value?.message.event?.start?.pid ?? 0;
  const stalled = await openAndStall(pid);
  await first.return(undefined);
  await delay(700);
  const { body } = await unary(envd.url, 'process.Process/List', {});
  assert.match(JSON.stringify(body), new RegExp(`"pid":${pid}\\b`), 'it waits for its listener at first');
  const late = await collect(stream(envd.url, 'process.Process/Connect', { process: { pid } }));
  assert.equal(late.end?.exitCode, 4);
  await stalled.body?.cancel();
});

test('binary output arrives exactly, on both streams', async () => {
  const script = 'head -c 3000000 /dev/urandom | tee >(sha256sum >&2); sleep 0.2';
  const result = { hash: createHash('sha256'), errors: '' };
  for await (const { message } of start(envd.url, '/bin/bash', ['-c', script], { stdin: false })) {
    const { stdout, stderr } = message.event?.data ?? {};
    if (stdout !== undefined) result.hash.update(Buffer.from(stdout, 'base64'));
    if (stderr !== undefined) result.errors += Buffer.from(stderr, 'base64').toString();
  }
  assert.equal(result.errors, `${result.hash.digest('hex')}  -\n`);
});

/** Attaches and reads nothing of the body. */
function openAndStall(pid: number): Promise<Response> {
  const json = Buffer.from(JSON.stringify({ process: { pid } }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return fetch(`${envd.url}/process.Process/Connect`, {
    method: 'POST',
    headers: { 'content-type': 'application/connect+json', 'connect-protocol-version': '1' },
    body: new Uint8Array(Buffer.concat([head, json])),
  });
}
