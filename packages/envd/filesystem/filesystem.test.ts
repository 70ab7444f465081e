import assert from 'node:assert/strict';
import { chown, lstat, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { unary } from '../testing/rpc-client.ts';

interface Entry {
  readonly name: string;
  readonly type?: string;
  readonly path: string;
  readonly size?: string;
  readonly mode?: number;
  readonly permissions: string;
  readonly owner: string;
  readonly group: string;
  readonly modifiedTime: string;
  readonly symlinkTarget?: string;
}

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

const call = (method: string, body: object, user?: string) =>
  unary(envd.url, `filesystem.Filesystem/${method}`, body, user === undefined ? {} : { user });
const list = async (path: string, depth?: number) => {
  const { status, body } = await call('ListDir', { path, depth });
  assert.equal(status, 200, JSON.stringify(body));
  return (body.entries ?? []) as Entry[];
};
const entryOf = async (method: string, body: object, user?: string) => {
  const answer = await call(method, body, user);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.entry as Entry;
};

test('an entry tells everything about a file', async () => {
  const path = join(dir, 'a b.txt');
  await writeFile(path, 'hello', { mode: 0o640 });
  await chown(path, 65534, 12345);
  await utimes(path, 1_700_000_000.5, 1_700_000_000.5);
  assert.deepEqual(await entryOf('Stat', { path }), {
    name: 'a b.txt',
    type: 'FILE_TYPE_FILE',
    path,
    size: '5',
    mode: 0o640,
    permissions: '-rw-r-----',
    owner: 'nobody',
    group: '12345',
    modifiedTime: '2023-11-14T22:13:20.500Z',
  });
});

test('a link has the type and the mode of its target, and is itself otherwise', async () => {
  await mkdir(join(dir, 'folder'), { mode: 0o750 });
  await symlink('folder', join(dir, 'one'));
  await symlink('one', join(dir, 'two'));
  await symlink('/no/such', join(dir, 'dangling'));
  await symlink('loop', join(dir, 'loop'));
  const two = await entryOf('Stat', { path: join(dir, 'two') });
  assert.equal(two.type, 'FILE_TYPE_DIRECTORY');
  assert.equal(two.symlinkTarget, join(dir, 'folder'));
  assert.equal(two.mode, 0o750);
  assert.equal(two.permissions, 'Lrwxrwxrwx');
  for (const name of ['dangling', 'loop']) {
    const entry = await entryOf('Stat', { path: join(dir, name) });
    assert.equal(entry.type, 'FILE_TYPE_SYMLINK', name);
    assert.equal(entry.symlinkTarget, undefined);
  }
});

test('permissions are written as Go does it', async () => {
  const { formatMode } = await import('./permissions.ts');
  assert.equal(formatMode(0o100644), '-rw-r--r--');
  assert.equal(formatMode(0o040755), 'drwxr-xr-x');
  assert.equal(formatMode(0o041777), 'dtrwxrwxrwx');
  assert.equal(formatMode(0o104755), 'urwxr-xr-x');
  assert.equal(formatMode(0o102755), 'grwxr-xr-x');
  assert.equal(formatMode(0o020620), 'Dcrw--w----');
  assert.equal(formatMode(0o060660), 'Drw-rw----');
  assert.equal(formatMode(0o010600), 'prw-------');
  assert.equal(formatMode(0o140777), 'Srwxrwxrwx');
});

test('a listing goes through folders in order, as deep as asked, and not through links', async () => {
  await mkdir(join(dir, 'b/c/d'), { recursive: true });
  for (const name of ['a', 'b/z', 'b/c/y', 'b/c/d/x', 'B']) await writeFile(join(dir, name), '');
  await symlink('b', join(dir, 'link'));
  const names = async (depth?: number) => (await list(dir, depth)).map(({ path }) => path.slice(dir.length + 1));
  assert.deepEqual(await names(), ['B', 'a', 'b', 'link']);
  assert.deepEqual(await names(0), ['B', 'a', 'b', 'link']);
  assert.deepEqual(await names(2), ['B', 'a', 'b', 'b/c', 'b/z', 'link']);
  assert.deepEqual(await names(9), ['B', 'a', 'b', 'b/c', 'b/c/d', 'b/c/d/x', 'b/c/y', 'b/z', 'link']);
  const through = await list(join(dir, 'link'), 1);
  assert.deepEqual(
    through.map(({ path }) => path),
    [join(dir, 'link/c'), join(dir, 'link/z')],
  );
  assert.ok((await list('/', 1)).some(({ path }) => path === '/etc'));
});

test('names are bytes: none breaks a listing, forms are kept', async () => {
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
  ];
  for (const name of names) await writeFile(join(dir, name), name);
  await writeFile(Buffer.concat([Buffer.from(`${dir}/bad-`), Buffer.from([0xff])]), 'x');
  const found = (await list(dir)).map(({ name }) => name);
  assert.deepEqual(found.toSorted(), [...names, 'bad-\ufffd'].toSorted());
  for (const name of names) {
    assert.equal((await entryOf('Stat', { path: join(dir, name) })).name, name);
    await entryOf('Move', { source: join(dir, name), destination: join(dir, 'sub', name) });
    assert.equal(await readFile(join(dir, 'sub', name), 'utf8'), name);
    assert.equal((await call('Remove', { path: join(dir, 'sub', name) })).status, 200);
  }
  assert.deepEqual(await readdir(join(dir, 'sub')), []);
  assert.equal((await call('Remove', { path: dir })).status, 200, 'also with the name that is no UTF-8');
  await assert.rejects(lstat(dir), { code: 'ENOENT' });
});

test('a name of 256 bytes and a path with NUL are invalid everywhere', async () => {
  for (const path of [join(dir, 'n'.repeat(256)), join(dir, 'é'.repeat(128)), `${dir}/a\0b`, `/${'x/'.repeat(3000)}`]) {
    for (const [method, body] of [
      ['Stat', { path }],
      ['ListDir', { path }],
      ['MakeDir', { path }],
      ['Remove', { path }],
      ['Move', { source: dir, destination: path }],
    ] as const) {
      const answer = await call(method, body);
      assert.equal(answer.status, 400, method);
      assert.equal(answer.body.code, 'invalid_argument');
    }
  }
});

test('what is missing is not_found, except for Remove', async () => {
  const path = join(dir, 'missing');
  assert.equal((await call('Stat', { path })).body.code, 'not_found');
  assert.equal((await call('ListDir', { path })).body.code, 'not_found');
  assert.equal((await call('Move', { source: path, destination: join(dir, 'x/y') })).body.code, 'not_found');
  await assert.rejects(lstat(join(dir, 'x')), { code: 'ENOENT' }, 'no parents were made for nothing');
  assert.equal((await call('Remove', { path })).status, 200);
  await writeFile(path, '');
  assert.equal((await call('ListDir', { path })).body.code, 'invalid_argument');
  assert.equal((await call('Stat', { path: join(path, 'below') })).body.code, 'invalid_argument');
});

test('MakeDir makes parents that belong to the user, and tells what is there already', async () => {
  const path = join(dir, 'p/q/r');
  const entry = await entryOf('MakeDir', { path }, 'nobody');
  assert.equal(entry.owner, 'nobody');
  assert.equal(entry.permissions, 'drwxr-xr-x');
  for (const each of ['p', 'p/q', 'p/q/r']) assert.equal((await stat(join(dir, each))).uid, 65534);
  assert.equal((await call('MakeDir', { path })).body.code, 'already_exists');
  await writeFile(join(dir, 'file'), '');
  assert.equal((await call('MakeDir', { path: join(dir, 'file') })).body.code, 'invalid_argument');
  assert.equal((await call('MakeDir', { path: join(dir, 'file/below') })).body.code, 'invalid_argument');
});

test('twenty callers make the same new tree at once', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => call('MakeDir', { path: join(dir, 'a/b/c/d', String(index)) })),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(20).fill(200),
  );
});

test('Move replaces a file, and refuses what rename(2) refuses', async () => {
  await writeFile(join(dir, 'one'), '1');
  await writeFile(join(dir, 'two'), '2');
  await mkdir(join(dir, 'full/x'), { recursive: true });
  await mkdir(join(dir, 'folder'));
  assert.equal((await entryOf('Move', { source: join(dir, 'one'), destination: join(dir, 'two') })).size, '1');
  assert.equal(await readFile(join(dir, 'two'), 'utf8'), '1');
  assert.equal((await call('Move', { source: join(dir, 'folder'), destination: join(dir, 'full') })).status, 409);
  assert.equal((await call('Move', { source: join(dir, 'two'), destination: join(dir, 'folder') })).status, 400);
  assert.equal((await call('Move', { source: join(dir, 'full'), destination: join(dir, 'full/x/y') })).status, 400);
  assert.equal((await call('Move', { source: join(dir, 'two'), destination: '' })).status, 400);
});

test('Remove takes a link and not what it points to', async () => {
  await mkdir(join(dir, 'target'));
  await writeFile(join(dir, 'target/file'), 'kept');
  await mkdir(join(dir, 'tree'));
  await symlink('../target', join(dir, 'tree/link'));
  await symlink('target', join(dir, 'link'));
  await call('Remove', { path: join(dir, 'link') });
  await call('Remove', { path: join(dir, 'tree') });
  assert.deepEqual(await readdir(dir), ['target']);
  assert.equal(await readFile(join(dir, 'target/file'), 'utf8'), 'kept');
  assert.equal((await call('Remove', { path: '/' })).status, 400);
  assert.equal((await call('Remove', { path: '' })).status, 400);
});

test('paths start in the home of the user, and an unknown user is unauthenticated', async () => {
  assert.equal((await entryOf('Stat', { path: '~' })).path, '/root');
  assert.equal((await entryOf('Stat', { path: '' })).path, '/root');
  assert.equal((await entryOf('Stat', { path: '../etc/passwd' })).path, '/etc/passwd');
  assert.equal((await entryOf('Stat', { path: '~/../tmp/.' })).path, '/tmp');
  const ghost = await call('Stat', { path: '/' }, 'ghost');
  assert.equal(ghost.status, 401);
  assert.deepEqual(ghost.body, { code: 'unauthenticated', message: "invalid username: 'ghost'" });
});
