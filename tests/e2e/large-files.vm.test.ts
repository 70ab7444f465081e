import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from 'e2b';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

const SOAK = process.env.AENV_SOAK === '1';
const MIB = 1024 * 1024;
const SIZE = (SOAK ? 3 : 1) * 1024 * MIB;
// What daemon and envd may each grow by, however much goes through them.
const GROWTH_MAX = 64 * MIB;

let daemon: TestDaemon;
let sandbox: Sandbox;
let token: string;
let envdPid: string;
before(async () => {
  daemon = await TestDaemon.start();
  sandbox = await createSandbox(daemon, { timeoutMs: 3_600_000 });
  const detail = await (await daemon.api('GET', `/sandboxes/${sandbox.sandboxId}`)).json();
  token = (detail as { envdAccessToken: string }).envdAccessToken;
  envdPid = await shell(
    sandbox,
    `ss -Htlnp 'sport = :49983' | sed -n 's/.*pid=\\([0-9]*\\).*/\\1/p' | head -1 | tr -d '\\n'`,
  );
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

/** Resident memory of the daemon and of envd now, in bytes. */
async function memory(): Promise<{ daemon: number; envd: number }> {
  const rss = (status: string) => Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
  return {
    daemon: rss(await readFile(`/proc/${daemon.pid}/status`, 'utf8')),
    envd: rss(await sandbox.files.read(`/proc/${envdPid}/status`)),
  };
}

/** Runs `work` and looks at the memory of both every second. The peak above what it was before. */
async function growth(work: () => Promise<void>): Promise<{ daemon: number; envd: number }> {
  const before = await memory();
  assert.ok(before.daemon > 0 && before.envd > 0, JSON.stringify(before));
  const peak = { ...before };
  let running = true;
  const watching = (async () => {
    while (running) {
      const now = await memory();
      peak.daemon = Math.max(peak.daemon, now.daemon);
      peak.envd = Math.max(peak.envd, now.envd);
      await delay(1000);
    }
  })();
  try {
    await work();
  } finally {
    running = false;
    await watching;
  }
  return { daemon: peak.daemon - before.daemon, envd: peak.envd - before.envd };
}

function assertFlat(context: TestContext, what: string, grown: { daemon: number; envd: number }): void {
  const text = `${what}: daemon +${Math.round(grown.daemon / MIB)} MiB, envd +${Math.round(grown.envd / MIB)} MiB`;
  context.diagnostic(text);
  assert.ok(grown.daemon < GROWTH_MAX && grown.envd < GROWTH_MAX, text);
}

/** Bytes that differ everywhere, cheap to make, and their hash. */
function content(size: number): { stream: ReadableStream<Uint8Array>; hash: () => string } {
  const hash = createHash('sha256');
  const piece = new Uint8Array(MIB).map((_, index) => (index * 2654435761) >>> 13);
  let sent = 0;
  return {
    hash: () => hash.digest('hex'),
    stream: new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (sent >= size) return controller.close();
          new DataView(piece.buffer).setFloat64(0, sent);
          const chunk = piece.slice(0, Math.min(MIB, size - sent));
          hash.update(chunk);
          sent += chunk.length;
          controller.enqueue(chunk);
        },
      },
      { highWaterMark: 0 },
    ),
  };
}

test(`${SIZE / MIB} MiB go up and come down with the same hash, and with flat memory`, async (context) => {
  const { stream, hash } = content(SIZE);
  const up = await growth(async () => {
    await sandbox.files.write('large', stream, { requestTimeoutMs: 600_000 });
  });
  const expected = hash();
  assert.equal((await shell(sandbox, 'stat -c %s /home/user/large')).trim(), String(SIZE));
  const received = createHash('sha256');
  const down = await growth(async () => {
    const body = await sandbox.files.read('large', { format: 'stream', requestTimeoutMs: 600_000 });
    for await (const chunk of body as ReadableStream<Uint8Array>) received.update(chunk);
  });
  assert.equal(received.digest('hex'), expected);
  assertFlat(context, 'up', up);
  assertFlat(context, 'down', down);
});

test('a part of a large file comes alone, and parts become a larger one', async (context) => {
  const answer = await daemon.port(sandbox.sandboxId, 49983, '/files?path=large', {
    headers: { 'x-access-token': token, range: `bytes=${SIZE - 10}-` },
  });
  assert.equal(answer.status, 206);
  assert.equal(answer.headers.get('content-range'), `bytes ${SIZE - 10}-${SIZE - 1}/${SIZE}`);
  assert.equal((await answer.arrayBuffer()).byteLength, 10);
  await sandbox.files.write('small', 'end');
  const composed = await growth(async () => {
    const response = await daemon.port(sandbox.sandboxId, 49983, '/files/compose', {
      method: 'POST',
      headers: { 'x-access-token': token, 'content-type': 'application/json' },
      body: JSON.stringify({ source_paths: ['large', 'small'], destination: 'larger' }),
    });
    assert.equal(response.status, 200, await response.text());
  });
  assertFlat(context, 'compose', composed);
  assert.equal(await shell(sandbox, 'cd /home/user && stat -c %s larger && tail -c 3 larger'), `${SIZE + 3}\nend`);
  await sandbox.files.remove('larger');
});

test('an upload that breaks off in the middle leaves the old content, and nothing else', async () => {
  await sandbox.files.write('kept', 'old content');
  const { hostname, port } = new URL(daemon.url);
  const socket = connect(Number(port), hostname);
  const broken = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.write(
    `POST /files?path=kept HTTP/1.1\r\nhost: x\r\ne2b-sandbox-id: ${sandbox.sandboxId}\r\ne2b-sandbox-port: 49983\r\n` +
      `x-access-token: ${token}\r\ncontent-type: application/octet-stream\r\ncontent-length: ${64 * MIB}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.write(Buffer.alloc(32 * MIB, 1), resolve));
  socket.destroy();
  await broken;
  const isLeft = async () => /upload/.test(await shell(sandbox, 'ls -A /home/user'));
  await until(async () => !(await isLeft()), { timeoutMs: 30_000, what: 'what came of the upload is gone' });
  assert.equal(await sandbox.files.read('kept'), 'old content');
});

test('files of no byte and of every byte, by every way', async () => {
  const every = Uint8Array.from({ length: 256 }, (_, index) => index);
  for (const useOctetStream of [false, true]) {
    await sandbox.files.write('empty', '', { useOctetStream });
    assert.equal(await sandbox.files.read('empty'), '');
    await sandbox.files.write('every', every.buffer, { useOctetStream });
    assert.deepEqual(await sandbox.files.read('every', { format: 'bytes' }), every);
    assert.deepEqual(await sandbox.files.read('every', { format: 'bytes', gzip: true }), every);
  }
});

test('a signed URL works until its second, not after it, and not with another character', async () => {
  await sandbox.files.write('signed', 'content');
  const get = async (url: string) => {
    const { pathname, search } = new URL(url);
    const answer = await daemon.port(sandbox.sandboxId, 49983, pathname + search);
    return { status: answer.status, body: await answer.text() };
  };
  const url = await sandbox.downloadUrl('signed', { useSignatureExpiration: 4 });
  const expires = Number(new URL(url).searchParams.get('signature_expiration')) * 1000;
  assert.deepEqual(await get(url), { status: 200, body: 'content' });
  const altered = url.replace(
    /signature=(v1_.)(.)/,
    (_, start, char) => `signature=${start}${char === 'a' ? 'b' : 'a'}`,
  );
  assert.equal((await get(altered)).status, 401);
  await delay(expires + 1_500 - Date.now());
  assert.deepEqual(await get(url), { status: 401, body: '{"code":401,"message":"signature is already expired"}' });
});

test('much output to a reader that is slow arrives whole, with flat memory', async (context) => {
  const bytes = (SOAK ? 200 : 24) * MIB;
  let received = 0;
  let paused = 0;
  const grown = await growth(async () => {
    const result = await sandbox.commands
      .run(`head -c ${bytes} /dev/zero | tr '\\0' x; exit 3`, {
        timeoutMs: 0,
        onStdout: async (text) => {
          received += text.length;
          // As slow as a program that does something with each piece.
          if (received - paused > 4 * MIB) {
            paused = received;
            await delay(400);
          }
        },
      })
      .catch((error: unknown) => error as { exitCode: number });
    assert.equal(result.exitCode, 3);
  });
  assert.equal(received, bytes);
  assertFlat(context, 'output', grown);
});
