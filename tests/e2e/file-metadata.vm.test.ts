import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  AuthenticationError,
  FileNotFoundError,
  InvalidArgumentError,
  NotEnoughSpaceError,
  type Sandbox,
  SandboxError,
} from 'e2b';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';

let daemon: TestDaemon;
let sandbox: Sandbox;
let token: string;
before(async () => {
  daemon = await TestDaemon.start();
  sandbox = await createSandbox(daemon);
  const detail = await (await daemon.api('GET', `/sandboxes/${sandbox.sandboxId}`)).json();
  token = (detail as { envdAccessToken: string }).envdAccessToken;
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

const post = async (path: string, headers: Record<string, string>, body: string) => {
  const answer = await daemon.port(sandbox.sandboxId, 49983, path, {
    method: 'POST',
    headers: { 'x-access-token': token, ...headers },
    body,
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const compose = (body: unknown) => post('/files/compose', { 'content-type': 'application/json' }, JSON.stringify(body));

test('metadata stays with a file through everything, in both ways to upload', async () => {
  const metadata = { author: 'mish', 'x-y.z': 'a "b" = c' };
  for (const useOctetStream of [false, true]) {
    const info = await sandbox.files.write('meta/a', 'a', { metadata, useOctetStream });
    assert.deepEqual(info.metadata, metadata);
    assert.deepEqual((await sandbox.files.getInfo('meta/a')).metadata, metadata);
    assert.deepEqual((await sandbox.files.list('meta'))[0]?.metadata, metadata);
    assert.deepEqual((await sandbox.files.rename('meta/a', 'meta/b')).metadata, metadata);
    const plain = await sandbox.files.write('meta/b', 'b');
    assert.equal(plain.metadata, undefined);
    assert.equal((await sandbox.files.getInfo('meta/b')).metadata, undefined);
    await sandbox.files.remove('meta/b');
  }
  const many = await sandbox.files.writeFiles(
    [
      { path: 'meta/1', data: 'x' },
      { path: 'meta/2', data: 'y' },
    ],
    { metadata },
  );
  assert.deepEqual(
    many.map((file) => file.metadata),
    [metadata, metadata],
  );
});

test('metadata is in attributes of the file, for programs to read and to set', async () => {
  await sandbox.files.write('attr', 'x', { metadata: { from: 'outside' } });
  const script = `import os
print(os.getxattr("attr", "user.e2b.from").decode(), oct(os.stat("attr").st_mode)[-3:])
os.setxattr("attr", "user.e2b.to", b"inside")`;
  assert.equal(
    (await sandbox.commands.run(`python3 -c '${script}'`)).stdout,
    'outside 644\n',
    'as the user, without any right of root',
  );
  assert.deepEqual((await sandbox.files.getInfo('attr')).metadata, { from: 'outside', to: 'inside' });
});

test('metadata that cannot be kept is InvalidArgumentError, and nothing is written', async () => {
  for (const metadata of [
    { 'bad key': 'v' },
    { '': 'v' },
    { k: 'a\nb' },
    { k: 'é' },
    { ['k'.repeat(247)]: 'v' },
    { k: 'v'.repeat(4096) },
  ]) {
    await assert.rejects(sandbox.files.write('refused', 'x', { metadata }), InvalidArgumentError);
  }
  assert.equal(await sandbox.files.exists('refused'), false);
});

test('parts become one file and are gone', async () => {
  for (const part of ['p1', 'p2', 'p3']) await sandbox.files.write(`parts/${part}`, part.repeat(100_000));
  const answer = await compose({ source_paths: ['parts/p1', 'parts/p2', 'parts/p3'], destination: 'whole/file' });
  assert.deepEqual(answer, { status: 200, body: { name: 'file', path: '/home/user/whole/file', type: 'file' } });
  assert.equal(await sandbox.files.read('whole/file'), ['p1', 'p2', 'p3'].map((part) => part.repeat(100_000)).join(''));
  assert.deepEqual(await sandbox.files.list('parts'), []);
  assert.equal((await sandbox.files.getInfo('whole/file')).owner, 'user');
});

test('what cannot be joined is refused by its kind', async () => {
  await sandbox.files.write('one', '1');
  for (const [body, status] of [
    [{ source_paths: [], destination: 'x' }, 400],
    [{ source_paths: ['one'] }, 400],
    [{ source_paths: ['one'], destination: 'one' }, 400],
    [{ source_paths: ['.'], destination: 'x' }, 400],
    [{ source_paths: ['one', 'missing'], destination: 'x' }, 404],
    [{ source_paths: ['one'], destination: 'x', username: 'ghost' }, 401],
  ] as const) {
    const answer = await compose(body);
    assert.deepEqual([answer.status, answer.body.code], [status, status], JSON.stringify(answer));
  }
  const foreign = await daemon.port(sandbox.sandboxId, 49983, '/files/compose', { method: 'POST', body: '{}' });
  assert.equal(foreign.status, 401);
  assert.equal(await sandbox.files.read('one'), '1');
});

test('a tree moves to another file system with all that it has', async () => {
  await sandbox.files.write('tree/a/file', 'x', { metadata: { kept: 'yes' } });
  const facts = 'find . -printf "%P %y %m %u:%g %T@ %l %n\\n" | sort';
  await shell(
    sandbox,
    'cd /home/user/tree && ln a/file a/hard && ln -s ../gone a/link && chmod 4750 a/file && mkdir -m 700 private && truncate -s 64M sparse',
  );
  const before = await shell(sandbox, `cd /home/user/tree && ${facts}`);
  assert.equal((await shell(sandbox, 'stat -f -c %T /dev/shm')).trim(), 'tmpfs');
  const moved = await sandbox.files.rename('tree', '/dev/shm/into/tree');
  assert.equal(moved.path, '/dev/shm/into/tree');
  assert.equal(await shell(sandbox, `cd /dev/shm/into/tree && ${facts}`), before);
  assert.equal(await sandbox.files.exists('tree'), false);
  await sandbox.files.rename('/dev/shm/into/tree', 'back');
  assert.equal(await shell(sandbox, `cd /home/user/back && ${facts}`), before);
  assert.deepEqual(await sandbox.files.list('/dev/shm/into'), []);
});

test('a move that does not fit leaves everything as it was, and says why', async () => {
  await shell(sandbox, 'mkdir -p /mnt/small && mount -t tmpfs -o size=1m none /mnt/small');
  await sandbox.files.write('big/file', 'x'.repeat(3_000_000));
  await assert.rejects(sandbox.files.rename('big', '/mnt/small/big'), (error) => {
    assert.ok(error instanceof SandboxError);
    assert.match(error.message, /no space left on device/);
    return true;
  });
  assert.deepEqual(await sandbox.files.list('/mnt/small'), []);
  assert.equal(await shell(sandbox, 'ls -A /mnt/small; df --output=used /mnt/small | tail -1'), '0\n'.padStart(6));
  assert.equal((await sandbox.files.getInfo('big/file')).size, 3_000_000);
  await assert.rejects(sandbox.files.write('/mnt/small/f', 'x'.repeat(3_000_000)), NotEnoughSpaceError);
  await sandbox.files.write('part', 'x'.repeat(3_000_000));
  assert.equal((await compose({ source_paths: ['part'], destination: '/mnt/small/f' })).status, 507);
  assert.equal((await sandbox.files.getInfo('part')).size, 3_000_000);
  assert.equal(await shell(sandbox, 'ls -A /mnt/small'), '');
});

test('bad paths and users have their class everywhere', async () => {
  await sandbox.files.write('plain', 'x');
  const { files } = sandbox;
  await assert.rejects(files.read('missing'), FileNotFoundError);
  await assert.rejects(files.getInfo('missing'), FileNotFoundError);
  await assert.rejects(files.list('missing'), FileNotFoundError);
  await assert.rejects(files.rename('missing', 'x'), FileNotFoundError);
  await assert.rejects(files.read('/etc'), InvalidArgumentError);
  await assert.rejects(files.list('plain'), InvalidArgumentError);
  await assert.rejects(files.list('.', { depth: 0 }), InvalidArgumentError);
  await assert.rejects(files.write('/etc', 'x'), InvalidArgumentError);
  await assert.rejects(files.write('plain/below', 'x'), InvalidArgumentError);
  await assert.rejects(files.makeDir('plain'), InvalidArgumentError);
  await assert.rejects(files.rename('plain', '/proc/x/y'), SandboxError);
  for (const call of [
    () => files.write('x', 'y', { user: 'ghost' }),
    () => files.read('plain', { user: 'ghost' }),
    () => files.list('.', { user: 'ghost' }),
  ]) {
    await assert.rejects(call(), AuthenticationError);
  }
});
