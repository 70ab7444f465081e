import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Attributes } from '../metadata/attributes.ts';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { nativeForTests } from '../testing/native.ts';
import { unary } from '../testing/rpc-client.ts';
import { move } from './move.ts';

let envd: TestEnvd;
let disk: string;
let memory: string;
let attributes: Attributes;
before(async () => {
  envd = await testEnvd();
  attributes = new Attributes(nativeForTests());
  disk = mkdtempSync(join(import.meta.dirname, '.move-test-'));
  memory = mkdtempSync('/dev/shm/aenv-move-test-');
  assert.notEqual(statSync(disk).dev, statSync(memory).dev, 'two file systems');
});
after(async () => {
  for (const path of [disk, memory]) rmSync(path, { recursive: true, force: true });
  await attributes.close();
  await envd[Symbol.asyncDispose]();
});
test.beforeEach(() => {
  for (const path of [disk, memory])
    for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true });
});

const rpc = (source: string, destination: string) =>
  unary(envd.url, 'filesystem.Filesystem/Move', { source, destination });
const bash = (script: string, cwd: string) => execFileSync('bash', ['-ec', script], { cwd, encoding: 'utf8' });
/** All that `move` keeps, of every entry, sorted. */
const describe = (path: string) => bash('find . -printf "%P|%y|%m|%U:%G|%T@|%l|%n\\0" | sort -z', path);

test('a tree goes to another file system with everything that it has, and back', async () => {
  const tree = join(disk, 'tree');
  mkdirSync(tree);
  bash(
    `mkdir -p a/b; printf one > a/one; ln a/one a/b/two; ln -s ../one a/b/link; ln -s /no/such dangling
     chmod 4751 a/one; chmod 2750 a; chmod 0 a/b/two.x 2>/dev/null || :; mkdir -m 1777 sticky; printf x > 'é
'; touch "$(printf 'bad-\\377')"
     truncate -s 40M sparse; printf end >> sparse
     chown -h 65534:12345 a/one a/b dangling; touch -d '2001-02-03 04:05:06.123456789' a/one a/b a; touch -h -d '1999-01-01' dangling
     chmod 4751 a/one
     /usr/bin/python3 -ISc 'import os; os.setxattr("a/one", "user.e2b.tag", b"v"); os.setxattr("a", "user.e2b.dir", b"w")'`,
    tree,
  );
  const before = describe(tree);
  const blocks = statSync(join(tree, 'sparse')).blocks;
  for (const [source, destination] of [
    [tree, join(memory, 'moved/tree')],
    [join(memory, 'moved/tree'), tree],
  ] as const) {
    const { status, body } = await rpc(source, destination);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual((body.entry as { metadata?: object }).metadata, undefined);
    assert.equal(describe(destination), before);
    assert.throws(() => statSync(source), { code: 'ENOENT' });
    assert.equal(readFileSync(join(destination, 'a/b/two'), 'utf8'), 'one');
    assert.ok(statSync(join(destination, 'sparse')).blocks <= blocks + 64, 'holes stay holes');
    assert.equal(bash('tail -c 3 sparse', destination), 'end');
    const { body: stat } = await unary(envd.url, 'filesystem.Filesystem/Stat', { path: join(destination, 'a/one') });
    assert.deepEqual((stat.entry as { metadata?: object }).metadata, { tag: 'v' });
  }
  assert.deepEqual(
    [readdirSync(memory), readdirSync(join(memory, 'moved')), readdirSync(disk)],
    [['moved'], [], ['tree']],
  );
});

test('files, links and what is in the way are as rename has them', async () => {
  writeFileSync(join(disk, 'file'), 'new');
  writeFileSync(join(memory, 'file'), 'old');
  mkdirSync(join(memory, 'full/x'), { recursive: true });
  mkdirSync(join(memory, 'empty'));
  mkdirSync(join(disk, 'folder/x'), { recursive: true });
  symlinkSync('file', join(disk, 'link'));
  assert.equal((await rpc(join(disk, 'file'), join(memory, 'empty'))).status, 400);
  assert.equal((await rpc(join(disk, 'folder'), join(memory, 'file'))).status, 400);
  assert.equal((await rpc(join(disk, 'folder'), join(memory, 'full'))).status, 409);
  assert.deepEqual(readdirSync(disk).sort(), ['file', 'folder', 'link']);
  assert.equal((await rpc(join(disk, 'link'), join(memory, 'link'))).status, 200);
  assert.equal((await rpc(join(disk, 'file'), join(memory, 'file'))).status, 200);
  assert.equal((await rpc(join(disk, 'folder'), join(memory, 'empty'))).status, 200);
  assert.equal(readFileSync(join(memory, 'link'), 'utf8'), 'new');
  assert.deepEqual(readdirSync(join(memory, 'empty')), ['x']);
  assert.deepEqual(readdirSync(disk), []);
});

test('what cannot be moved is told, and everything is as before', async () => {
  const tree = join(disk, 'tree');
  mkdirSync(join(tree, 'a'), { recursive: true });
  writeFileSync(join(tree, 'a/file'), 'x');
  bash('mkfifo a/fifo', tree);
  const before = describe(tree);
  const answer = await rpc(tree, join(memory, 'tree'));
  assert.equal(answer.body.code, 'invalid_argument');
  assert.match(String(answer.body.message), /fifo/);
  assert.equal(describe(tree), before);
  assert.deepEqual([readdirSync(memory), readdirSync(disk)], [[], ['tree']]);
  assert.equal((await rpc(join(disk, 'missing'), join(memory, 'x'))).body.code, 'not_found');
});

test('when nobody waits for it any more, it stops and everything is as before', async () => {
  writeFileSync(join(disk, 'large'), Buffer.alloc(8 * 1024 * 1024, 1));
  const parts = { user: { name: 'root', uid: 0, gid: 0, home: '/', groups: [] }, attributes };
  const reason = new AbortController();
  const moving = move(join(disk, 'large'), join(memory, 'large'), { ...parts, signal: reason.signal });
  reason.abort();
  await assert.rejects(moving, /left/);
  assert.deepEqual([readdirSync(memory), readdirSync(disk)], [[], ['large']]);
});

test('whoever watches sees one name vanish and the other appear, complete', async () => {
  mkdirSync(join(disk, 'tree'));
  writeFileSync(join(disk, 'tree/file'), 'x');
  const watchers: unknown[] = [];
  for (const path of [disk, memory]) {
    const { body } = await unary(envd.url, 'filesystem.Filesystem/CreateWatcher', { path, recursive: true });
    watchers.push(body.watcherId);
  }
  assert.equal((await rpc(join(disk, 'tree'), join(memory, 'tree'))).status, 200);
  const seen = [];
  for (const watcherId of watchers) {
    const { body } = await unary(envd.url, 'filesystem.Filesystem/GetWatcherEvents', { watcherId });
    seen.push((body.events as { name: string; type: string }[]).map(({ name, type }) => `${type.slice(11)} ${name}`));
    await unary(envd.url, 'filesystem.Filesystem/RemoveWatcher', { watcherId });
  }
  assert.deepEqual(seen, [['RENAME tree'], ['CREATE tree', 'CREATE tree/file', 'WRITE tree/file']]);
});
