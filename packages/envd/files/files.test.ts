import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { heldBytes } from '../testing/memory.ts';

let envd: TestEnvd;
let dir: string;
before(async () => {
  envd = await testEnvd();
});
after(() => envd[Symbol.asyncDispose]());
test.beforeEach(async (context) => {
  dir = join(envd.dir, context.name.replace(/[^a-z]+/gi, '-').slice(0, 40));
  await mkdir(dir);
});

const url = (path?: string, more: Record<string, string> = {}) =>
  `${envd.url}/files?${new URLSearchParams({ ...(path === undefined ? {} : { path }), ...more })}`;
const put = (path: string, body: string | Uint8Array<ArrayBuffer>, more = {}, headers = {}) =>
  fetch(url(path, more), { method: 'POST', body, headers: { 'content-type': 'application/octet-stream', ...headers } });
const form = (parts: readonly (readonly [string, string | Blob, string?])[], target: string) => {
  const body = new FormData();
  for (const [name, value, filename] of parts) {
    if (filename === undefined) body.append(name, value as string);
    else body.append(name, value as Blob, filename);
  }
  return fetch(target, { method: 'POST', body });
};

test('a file goes up and comes down byte by byte, with an exact answer', async () => {
  const path = join(dir, 'sub/every.bin');
  const bytes = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, i) => i)), randomBytes(1_000_000)]);
  const up = await put(path, new Uint8Array(bytes), { username: 'nobody' });
  assert.equal(up.status, 200);
  assert.deepEqual(await up.json(), [{ name: 'every.bin', path, type: 'file' }]);
  const { uid, mode } = await stat(path);
  assert.deepEqual([uid, mode & 0o777], [65534, 0o644]);
  assert.equal((await stat(join(dir, 'sub'))).uid, 65534);
  const down = await fetch(url(path));
  assert.equal(down.status, 200);
  assert.equal(down.headers.get('content-length'), String(bytes.length));
  assert.equal(down.headers.get('vary'), 'Accept-Encoding');
  assert.ok(Buffer.from(await down.arrayBuffer()).equals(bytes));
});

test('HEAD answers like GET without the bytes', async () => {
  await writeFile(join(dir, 'f.txt'), 'hello');
  const head = await fetch(url(join(dir, 'f.txt')), { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(head.headers.get('content-length'), '5');
  assert.match(head.headers.get('content-type') ?? '', /^text\/plain/);
});

test('empty files, and files of procfs that only say that they are empty', async () => {
  assert.equal((await put(join(dir, 'empty'), '')).status, 200);
  const empty = await fetch(url(join(dir, 'empty')));
  assert.equal(empty.headers.get('content-length'), '0');
  assert.equal(await empty.text(), '');
  assert.match(await (await fetch(url('/proc/self/status'))).text(), /^Name:/);
});

test('multipart: the path is in the filename, folders and all; other parts are ignored', async () => {
  const answer = await form(
    [
      ['file', new Blob(['one']), join(dir, 'x/日本語 🦀.txt')],
      ['other', new Blob(['no']), join(dir, 'no')],
      ['text', 'no'],
      ['file', new Blob(['two']), `${dir}/a"b\nc%2F`],
    ],
    url(),
  );
  assert.equal(answer.status, 200);
  assert.deepEqual(await answer.json(), [
    { name: '日本語 🦀.txt', path: join(dir, 'x/日本語 🦀.txt'), type: 'file' },
    { name: 'a"b\nc%2F', path: `${dir}/a"b\nc%2F`, type: 'file' },
  ]);
  assert.equal(await readFile(join(dir, 'x/日本語 🦀.txt'), 'utf8'), 'one');
  assert.deepEqual((await readdir(dir)).toSorted(), ['a"b\nc%2F', 'x']);
});

test('multipart: ?path= wins over the filename, and then none is needed', async () => {
  const path = join(dir, 'target');
  assert.equal((await form([['file', new Blob(['blob']), 'ignored.txt']], url(path))).status, 200);
  assert.equal(await readFile(path, 'utf8'), 'blob');
  const text = await form([['file', 'text é']], url(path));
  assert.deepEqual(await text.json(), [{ name: 'target', path, type: 'file' }]);
  assert.equal(await readFile(path, 'utf8'), 'text é');
  assert.equal((await form([['file', 'x']], url())).status, 400);
});

test('multipart: the same path twice is 400, and then nothing at all is written', async () => {
  const twice = await form(
    [
      ['file', new Blob(['1']), join(dir, 'f')],
      ['file', new Blob(['2']), join(dir, 'f')],
    ],
    url(),
  );
  assert.equal(twice.status, 400);
  assert.deepEqual(await readdir(dir), []);
});

test('malformed uploads are 400 and leave nothing behind', async () => {
  const path = join(dir, 'f');
  const cases: [string, string, string][] = [
    [url(path), 'text/plain', 'x'],
    [url(), 'application/octet-stream', 'x'],
    [url(), 'multipart/form-data', 'x'],
    [
      url(),
      'multipart/form-data; boundary=b',
      '--b\r\ncontent-disposition: form-data; name="file"; filename="/x"\r\n\r\ncut',
    ],
    [url(), 'multipart/form-data; boundary=b', 'no parts at all'],
  ];
  for (const [target, type, body] of cases) {
    const response = await fetch(target, { method: 'POST', headers: { 'content-type': type }, body });
    assert.equal(response.status, 400, `${type}: ${await response.text()}`);
  }
  const encoded = await put(path, 'not gzip', {}, { 'content-encoding': 'gzip' });
  assert.equal(encoded.status, 400);
  assert.equal((await put(path, 'x', {}, { 'content-encoding': 'br' })).status, 400);
  assert.deepEqual(await readdir(dir), []);
});

test('gzip bodies are undone, for octet streams and for forms', async () => {
  const text = 'text '.repeat(10_000);
  const packed = new Uint8Array(gzipSync(text));
  assert.equal((await put(join(dir, 'a'), packed, {}, { 'content-encoding': 'gzip' })).status, 200);
  assert.equal(await readFile(join(dir, 'a'), 'utf8'), text);
  const body = gzipSync(
    `--b\r\ncontent-disposition: form-data; name="file"; filename="${dir}/b"\r\n\r\n${text}\r\n--b--\r\n`,
  );
  const headers = { 'content-type': 'multipart/form-data; boundary=b', 'content-encoding': 'gzip' };
  const response = await fetch(url(), { method: 'POST', headers, body: new Uint8Array(body) });
  assert.equal(response.status, 200, await response.text());
  assert.equal(await readFile(join(dir, 'b'), 'utf8'), text);
});

test('a client that accepts nothing but gzip gets it, one that lists many does not', async () => {
  const text = 'text '.repeat(10_000);
  await writeFile(join(dir, 'f'), text);
  const get = async (accept: string) => {
    const { socket, head, body } = await rawGet(url(join(dir, 'f')), { 'accept-encoding': accept });
    socket.destroy();
    return { head: head.toLowerCase(), body };
  };
  const gzip = await get('gzip');
  assert.match(gzip.head, /content-encoding: gzip/);
  assert.equal(gunzipSync(unchunk(gzip.body)).toString(), text);
  assert.doesNotMatch((await get('gzip, deflate')).head, /content-encoding/);
  assert.match((await get('identity;q=0, gzip')).head, /content-encoding: gzip/);
  assert.match((await get('identity;q=0, br')).head, /^http\/1.1 406/);
});

test('a client that goes away in the middle leaves the old content and no other trace', async () => {
  const path = join(dir, 'f');
  await writeFile(path, 'old content');
  for (const type of ['application/octet-stream', 'multipart/form-data; boundary=b']) {
    const socket = connect(envd.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(`POST ${new URL(url(path)).pathname}?path=${encodeURIComponent(path)} HTTP/1.1\r\nhost: x\r\n`);
    socket.write(`content-type: ${type}\r\ncontent-length: 1000000\r\n\r\n`);
    if (type.startsWith('multi'))
      socket.write('--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n');
    socket.write('n'.repeat(200_000));
    await untilThereAre(2);
    assert.equal(await readFile(path, 'utf8'), 'old content');
    socket.destroy();
    await untilThereAre(1);
    assert.deepEqual(await readdir(dir), ['f']);
    assert.equal(await readFile(path, 'utf8'), 'old content');
  }

  async function untilThereAre(count: number): Promise<void> {
    const limit = Date.now() + 10_000;
    for (; (await readdir(dir)).length !== count; await delay(10)) assert.ok(Date.now() < limit, `${count} files`);
  }
});

test('overwriting keeps the mode, follows links, and shortens', async () => {
  await writeFile(join(dir, 'script'), 'long old content', { mode: 0o644 });
  await chmod(join(dir, 'script'), 0o755);
  await mkdir(join(dir, 'd'));
  await symlink('../script', join(dir, 'd/link'));
  await symlink('fresh', join(dir, 'd/dangling'));
  assert.equal((await put(join(dir, 'd/link'), 'new')).status, 200);
  assert.equal(await readFile(join(dir, 'script'), 'utf8'), 'new');
  assert.equal((await stat(join(dir, 'script'))).mode & 0o777, 0o755);
  assert.ok((await lstat(join(dir, 'd/link'))).isSymbolicLink());
  assert.equal((await put(join(dir, 'd/dangling'), 'made')).status, 200);
  assert.equal(await readFile(join(dir, 'd/fresh'), 'utf8'), 'made');
});

test('twenty parallel writes into the same new folder', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => put(join(dir, 'a/b/c/d', String(index)), String(index))),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(20).fill(200),
  );
  assert.equal((await readdir(join(dir, 'a/b/c/d'))).length, 20);
});

test('names come back byte by byte, and in Content-Disposition', async () => {
  const names = [
    'a b',
    '日本語',
    '🦀',
    'é'.normalize('NFC'),
    'é'.normalize('NFD'),
    '-rf',
    '%2F',
    'a\nb',
    'n'.repeat(255),
    '..x',
    '"q"\\',
  ];
  for (const name of names) {
    const path = `${dir}/${name}`;
    assert.deepEqual(await (await put(path, name)).json(), [{ name, path, type: 'file' }]);
    const response = await fetch(url(path));
    assert.equal(await response.text(), name);
    const disposition = response.headers.get('content-disposition') ?? '';
    const [, encoded = ''] = /^inline; .*filename\*=UTF-8''(\S+)$/.exec(disposition) ?? [];
    assert.equal(decodeURIComponent(encoded), name);
  }
  assert.deepEqual((await readdir(dir)).toSorted(), names.toSorted());
  assert.equal((await put(`${dir}/${'n'.repeat(256)}`, '')).status, 400);
  assert.equal((await fetch(url(`${dir}/${'n'.repeat(256)}`))).status, 400);
});

test('errors have the status and the words that clients look for', async () => {
  const missing = await fetch(url(join(dir, 'missing')));
  assert.equal(missing.status, 404);
  assert.deepEqual(await missing.json(), { code: 404, message: `path '${join(dir, 'missing')}' does not exist` });
  const folder = await fetch(url(dir));
  assert.equal(folder.status, 400);
  assert.deepEqual(await folder.json(), { code: 400, message: `path '${dir}' is a directory` });
  assert.equal((await put(dir, 'x')).status, 400);
  const ghost = await fetch(url(dir, { username: 'ghost' }));
  assert.equal(ghost.status, 401);
  assert.match(String(((await ghost.json()) as { message: string }).message), /^error looking up user 'ghost': /);
  await writeFile(join(dir, 'file'), '');
  assert.equal((await put(join(dir, 'file/below'), 'x')).status, 400);
  assert.equal((await fetch(url(join(dir, 'file/below')))).status, 400);
  assert.equal((await fetch(url('/dev/zero'))).status, 400);
  assert.equal((await put('/dev/full', 'x')).status, 400);
  const method = await fetch(url(dir), { method: 'DELETE' });
  assert.equal(method.status, 405);
  assert.equal(method.headers.get('allow'), 'GET, HEAD, POST');
});

test('64 MiB stream up and down with flat memory', async () => {
  const path = join(dir, 'large');
  const hash = createHash('sha256');
  const before = heldBytes();
  let peak = 0;
  const look = () => {
    peak = Math.max(peak, heldBytes() - before);
  };
  // fetch would hold on to what it has sent.
  const headers = { 'content-type': 'application/octet-stream' };
  const upload = request(url(path), { method: 'POST', headers });
  const answer = once(upload, 'response');
  const pieces = async function* () {
    for (let sent = 1; sent <= 64; sent++) {
      const piece = randomBytes(1024 * 1024);
      hash.update(piece);
      yield piece;
      if (sent % 16 === 0) look();
    }
  };
  await pipeline(pieces, upload);
  const [{ statusCode }] = await answer;
  assert.equal(statusCode, 200);
  const down = createHash('sha256');
  let unseen = 0;
  for await (const chunk of (await fetch(url(path))).body ?? []) {
    down.update(chunk);
    unseen += chunk.length;
    if (unseen < 16 * 2 ** 20) continue;
    look();
    unseen = 0;
  }
  assert.equal(down.digest('hex'), hash.digest('hex'));
  assert.ok(peak < 32 * 2 ** 20, `${peak} bytes are held`);
});

/** GET without a library that would undo or change anything; the server closes the connection. */
async function rawGet(target: string, headers: Record<string, string>) {
  const { pathname, search } = new URL(target);
  const socket = connect(envd.port, '127.0.0.1');
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${lines.join('')}\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  const all = Buffer.concat(chunks);
  const end = all.indexOf('\r\n\r\n');
  return { socket, head: all.subarray(0, end).toString(), body: all.subarray(end + 4) };
}

function unchunk(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let offset = 0; offset < body.length; ) {
    const line = body.indexOf('\r\n', offset);
    const size = Number.parseInt(body.toString('latin1', offset, line), 16);
    parts.push(body.subarray(line + 2, line + 2 + size));
    offset = line + 2 + size + 2;
  }
  return Buffer.concat(parts);
}
