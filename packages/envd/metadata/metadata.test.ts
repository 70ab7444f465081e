import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { Applet } from '../native/applet.ts';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { nativeForTests } from '../testing/native.ts';
import { unary } from '../testing/rpc-client.ts';
import { Attributes } from './attributes.ts';
import { metadataOf } from './metadata.ts';

let envd: TestEnvd;
let dir: string;
before(async () => {
  envd = await testEnvd();
  // Not every tmpfs has attributes of users; the folder of this file is on a real disk.
  dir = mkdtempSync(join(import.meta.dirname, '.metadata-test-'));
});
after(async () => {
  rmSync(dir, { recursive: true, force: true });
  await envd[Symbol.asyncDispose]();
});

const put = (path: string, headers: Record<string, string>) =>
  fetch(`${envd.url}/files?path=${encodeURIComponent(path)}`, {
    method: 'POST',
    body: 'content',
    headers: { 'content-type': 'application/octet-stream', ...headers },
  });
const stat = async (path: string) => {
  const { body } = await unary(envd.url, 'filesystem.Filesystem/Stat', { path });
  return (body.entry as { metadata?: object }).metadata;
};
const python = (code: string, ...args: string[]) =>
  execFileSync('/usr/bin/python3', ['-ISc', `import os, sys\n${code}`, ...args], { encoding: 'utf8' }).trim();

test('metadata comes back from everything that describes the file, and is in attributes of the file', async () => {
  const path = join(dir, 'f');
  const metadata = { author: 'mish', purpose: 'a "b" = c' };
  const up = await put(path, { 'X-Metadata-Author': 'mish', 'x-metadata-PURPOSE': 'a "b" = c' });
  assert.deepEqual(await up.json(), [{ name: 'f', path, type: 'file', metadata }]);
  assert.deepEqual(await stat(path), metadata);
  assert.equal(python('print(sorted(os.listxattr(sys.argv[1])))', path), "['user.e2b.author', 'user.e2b.purpose']");
  const listed = await unary(envd.url, 'filesystem.Filesystem/ListDir', { path: dir });
  assert.deepEqual((listed.body.entries as { metadata?: object }[])[0]?.metadata, metadata);
  const moved = await unary(envd.url, 'filesystem.Filesystem/Move', { source: path, destination: join(dir, 'g') });
  assert.deepEqual((moved.body.entry as { metadata?: object }).metadata, metadata);
});

test('each upload replaces the whole set, and none means none', async () => {
  const path = join(dir, 'replaced');
  await put(path, { 'x-metadata-a': '1', 'x-metadata-b': '2' });
  await put(path, { 'x-metadata-b': '3' });
  assert.deepEqual(await stat(path), { b: '3' });
  const none = await put(path, {});
  assert.deepEqual(await none.json(), [{ name: 'replaced', path, type: 'file' }]);
  assert.equal(await stat(path), undefined);
});

test('a form gives its metadata to each of its files', async () => {
  const body = new FormData();
  for (const name of ['one', 'two']) body.append('file', new Blob([name]), join(dir, name));
  const response = await fetch(`${envd.url}/files`, { method: 'POST', body, headers: { 'x-metadata-k': 'v' } });
  assert.deepEqual(
    ((await response.json()) as { metadata: object }[]).map(({ metadata }) => metadata),
    [{ k: 'v' }, { k: 'v' }],
  );
  assert.deepEqual([await stat(join(dir, 'one')), await stat(join(dir, 'two'))], [{ k: 'v' }, { k: 'v' }]);
});

test('what was set from inside shows up, as far as a message can hold it; links show their target', async () => {
  const path = join(dir, 'inside');
  writeFileSync(path, '');
  python(
    'for n, v in (("author", "é".encode()), ("bad", b"\\xff"), ("nul", b"a\\0b"), ("empty", b"")): os.setxattr(sys.argv[1], "user.e2b." + n, v)',
    path,
  );
  python('os.setxattr(sys.argv[1], "user.other", b"x")', path);
  python('os.setxattr(sys.argv[1], b"user.e2b.\\xff", b"x")', path);
  assert.deepEqual(await stat(path), { author: 'é', empty: '' });
  symlinkSync('inside', join(dir, 'link'));
  assert.deepEqual(await stat(join(dir, 'link')), { author: 'é', empty: '' });
  mkdirSync(join(dir, 'folder'));
  python('os.setxattr(sys.argv[1], "user.e2b.k", b"v")', join(dir, 'folder'));
  assert.deepEqual(await stat(join(dir, 'folder')), { k: 'v' });
  assert.equal(await stat('/proc/self/status'), undefined);
});

test('metadata that cannot be kept is refused before anything is written', async () => {
  const path = join(dir, 'refused');
  for (const [name, value] of [
    [`x-metadata-${'k'.repeat(247)}`, 'v'],
    ['x-metadata-k', 'v'.repeat(4096)],
    ['x-metadata-k', 'caf\u00e9'],
    ['x-metadata-k', 'tab\there'],
  ] as const) {
    const status = await rawPut(path, name, value);
    assert.equal(status, 400, `${name}: ${value.slice(0, 10)}`);
  }
  assert.equal((await unary(envd.url, 'filesystem.Filesystem/Stat', { path })).status, 404);
  assert.equal(await rawPut(path, `x-metadata-${'k'.repeat(246)}`, 'v'), 200);
  assert.equal(await rawPut(path, 'x-metadata-', 'no key, so it is ignored'), 200);
  assert.equal(await stat(path), undefined);
});

test('a folder of 1500 files is listed with the metadata of each, by one process', async () => {
  const folder = join(dir, 'many');
  mkdirSync(folder);
  python(
    'for i in range(1500):\n p = f"{sys.argv[1]}/{i}"; open(p, "w").close(); os.setxattr(p, "user.e2b.n", str(i).encode())',
    folder,
  );
  const { body } = await unary(envd.url, 'filesystem.Filesystem/ListDir', { path: folder });
  const entries = body.entries as { name: string; metadata: { n: string } }[];
  assert.equal(entries.length, 1500);
  for (const { name, metadata } of entries) assert.equal(metadata.n, name);
  const processes = execFileSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' });
  assert.equal(processes.split('\n').filter((line) => line.endsWith(' xattr')).length, 1);
});

test('somebody kills the process that serves attributes: descriptions go on, the next one has all again', async () => {
  const path = join(dir, 'killed');
  await put(path, { 'x-metadata-k': 'v' });
  const attributes = new Attributes(nativeForTests());
  assert.deepEqual({ ...(await attributes.read([path]))[0] }, { k: 'v' });
  const pids = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)], { encoding: 'utf8' });
  for (const line of pids.split('\n').filter((text) => text.endsWith(' xattr'))) {
    process.kill(Number.parseInt(line, 10), 'SIGSTOP');
    const pending = attributes.read([path]);
    process.kill(Number.parseInt(line, 10), 'SIGKILL');
    await pending;
  }
  assert.deepEqual({ ...(await attributes.read([path]))[0] }, { k: 'v' });
  await attributes.close();
  const missing = new Attributes('/no/such/program');
  assert.deepEqual(await missing.read([path, path]), [undefined, undefined]);
  await assert.rejects(missing.write(path, { k: 'v' }), { code: 'internal' });
});

test('a file system that does not answer holds nobody up for ever', async () => {
  const applet = new Applet(nativeForTests(), 'xattr', 200);
  assert.equal((await applet.ask([['get /']]))[0]?.errno, 0);
  const pids = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)], { encoding: 'utf8' });
  const [last = ''] = pids
    .split('\n')
    .filter((text) => text.endsWith(' xattr'))
    .slice(-1);
  process.kill(Number.parseInt(last, 10), 'SIGSTOP');
  await assert.rejects(applet.ask([['get /'], ['get /tmp']]), { code: 'internal' });
  await applet.ended;
  await assert.rejects(applet.ask([['get /']]), { code: 'internal' });
});

test('whatever headers come, they are refused or kept exactly', () => {
  const token = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,260}$/);
  fc.assert(
    fc.property(fc.array(fc.tuple(token, fc.string({ maxLength: 50 }))), (pairs) => {
      const raw = pairs.flatMap(([key, value]) => [`X-Metadata-${key}`, value]);
      let metadata: Record<string, string>;
      try {
        metadata = metadataOf(['content-type', 'x', ...raw]);
      } catch (error) {
        return (error as { status: number }).status === 400;
      }
      const expected = new Map<string, string>();
      for (const [key, value] of pairs) {
        const name = key.toLowerCase();
        if (name !== '' && !expected.has(name)) expected.set(name, value);
      }
      assert.deepEqual(new Map(Object.entries(metadata)), expected);
      const size = [...expected].reduce((sum, [key, value]) => sum + 9 + key.length + value.length, 0);
      return size <= 4096 && [...expected.values()].every((value) => /^[ -~]*$/.test(value));
    }),
  );
});

/** A header goes out as it is, byte by byte. */
function rawPut(path: string, name: string, value: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${envd.url}/files?path=${encodeURIComponent(path)}`,
      { method: 'POST', headers: { 'content-type': 'application/octet-stream', [name]: value } },
      (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
      },
    );
    sent.on('error', reject);
    sent.end('x');
  });
}
