import assert from 'node:assert/strict';
import { link, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { unary } from '../testing/rpc-client.ts';

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

const compose = async (body: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(`${envd.url}/files/compose`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

test('files are joined in their order and removed, the answer is exact', async () => {
  const sources = ['a', 'b', 'c'].map((name) => join(dir, name));
  for (const path of sources) await writeFile(path, path.repeat(50_000));
  await writeFile(join(dir, 'empty'), '');
  const destination = join(dir, 'new/deep/file');
  const answer = await compose({ source_paths: [...sources, join(dir, 'empty')], destination, username: 'nobody' });
  assert.deepEqual(answer, { status: 200, body: { name: 'file', path: destination, type: 'file' } });
  assert.equal(await readFile(destination, 'utf8'), sources.map((path) => path.repeat(50_000)).join(''));
  assert.deepEqual(await readdir(dir), ['new']);
  const { uid, mode } = await stat(destination);
  assert.deepEqual([uid, mode & 0o777], [65534, 0o644]);
});

test('a source may come twice, and be a link, which is what is removed', async () => {
  await writeFile(join(dir, 'a'), '1');
  await writeFile(join(dir, 'target'), '2');
  await symlink('target', join(dir, 'link'));
  const source_paths = [join(dir, 'a'), join(dir, 'link'), join(dir, 'a')];
  assert.equal((await compose({ source_paths, destination: join(dir, 'out') })).status, 200);
  assert.equal(await readFile(join(dir, 'out'), 'utf8'), '121');
  assert.deepEqual((await readdir(dir)).sort(), ['out', 'target']);
});

test('what is there is replaced at once, and whoever watches sees a write', async () => {
  await writeFile(join(dir, 'out'), 'old', { mode: 0o600 });
  await writeFile(join(dir, 'a'), 'new');
  const { body } = await unary(envd.url, 'filesystem.Filesystem/CreateWatcher', { path: dir });
  assert.equal((await compose({ source_paths: [join(dir, 'a')], destination: join(dir, 'out') })).status, 200);
  const events = await unary(envd.url, 'filesystem.Filesystem/GetWatcherEvents', { watcherId: body.watcherId });
  assert.deepEqual(events.body.events, [
    { name: 'out', type: 'EVENT_TYPE_CHMOD' },
    { name: 'out', type: 'EVENT_TYPE_WRITE' },
    { name: 'a', type: 'EVENT_TYPE_REMOVE' },
  ]);
  assert.equal((await stat(join(dir, 'out'))).mode & 0o777, 0o600);
});

test('what cannot be joined is refused by its kind, and everything stays', async () => {
  for (const name of ['a', 'b']) await writeFile(join(dir, name), name);
  await mkdir(join(dir, 'folder'));
  await link(join(dir, 'a'), join(dir, 'hard'));
  await symlink('.', join(dir, 'here'));
  const [a, b, out] = [join(dir, 'a'), join(dir, 'b'), join(dir, 'out')];
  const before = await readdir(dir);
  const cases: [unknown, number, RegExp][] = [
    ['', 400, /object/],
    ['{', 400, /JSON/],
    ['[]', 400, /source_paths/],
    [{ source_paths: [], destination: out }, 400, /source_paths/],
    [{ source_paths: [5], destination: out }, 400, /source_paths/],
    [{ source_paths: a, destination: out }, 400, /source_paths/],
    [{ source_paths: [a] }, 400, /destination/],
    [{ source_paths: [a], destination: '' }, 400, /destination/],
    [{ source_paths: [a], destination: out, username: 5 }, 400, /username/],
    [{ source_paths: [a], destination: out, username: 'ghost' }, 401, /ghost/],
    [{ source_paths: [a, join(dir, 'no')], destination: out }, 404, /source file not found: .*\/no/],
    [{ source_paths: [a, join(dir, 'folder')], destination: out }, 400, /not a regular file/],
    [{ source_paths: [a, '/dev/zero'], destination: out }, 400, /not a regular file/],
    [{ source_paths: [join(a, 'x')], destination: out }, 400, /not a directory/],
    [{ source_paths: [b, a], destination: a }, 400, /same as destination/],
    [{ source_paths: [join(dir, 'hard')], destination: a }, 400, /same as destination/],
    [{ source_paths: [join(dir, 'here/a')], destination: a }, 400, /same as destination/],
    [{ source_paths: [a], destination: join(dir, 'folder') }, 400, /is a directory/],
    [{ source_paths: [a], destination: join(b, 'below') }, 400, /not a directory/],
    [{ source_paths: [a], destination: join(dir, 'n'.repeat(256)) }, 400, /too long/],
  ];
  for (const [body, status, message] of cases) {
    const answer = await compose(body);
    assert.equal(answer.status, status, JSON.stringify([body, answer]));
    assert.match(String(answer.body.message), message, JSON.stringify(body));
    assert.equal(answer.body.code, status);
  }
  assert.deepEqual(await readdir(dir), before);
  assert.deepEqual([await readFile(a, 'utf8'), await readFile(b, 'utf8')], ['a', 'b']);
});

test('the token is needed, and other methods are refused', async () => {
  await using secured = await testEnvd();
  await secured.init({ accessToken: 'secret' });
  const post = (headers: Record<string, string>) =>
    fetch(`${secured.url}/files/compose`, { method: 'POST', headers, body: '{}' });
  assert.equal((await post({})).status, 401);
  assert.equal((await post({ 'x-access-token': 'wrong' })).status, 401);
  assert.equal((await post({ 'x-access-token': 'secret' })).status, 400);
  assert.equal((await fetch(`${envd.url}/files/compose`)).status, 405);
});
