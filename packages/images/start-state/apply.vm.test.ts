import assert from 'node:assert/strict';
import { lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { TestRoot } from '../testing/apply.ts';
import { applyStartState, makeWorkingDir } from './apply.ts';

const PASSWD = 'root:x:0:0:root:/root:/bin/bash\n';

async function imageWith(files: Readonly<Record<string, string>>): Promise<TestRoot> {
  const root = await TestRoot.make();
  await root.apply([Object.entries(files).map(([name, data]) => ({ name, data, mode: 0o640 }))]);
  return root;
}

const text = (root: TestRoot, name: string) => readFile(root.path(name), 'utf8');

test('an image gets the account user, with home, skeleton and sudo', async () => {
  await using root = await imageWith({
    'etc/passwd': PASSWD,
    'etc/group': 'root:x:0:\n',
    'etc/shadow': 'root:*:1::::::\n',
    'etc/gshadow': 'root:*::\n',
    'etc/sudoers': '@includedir /etc/sudoers.d\n',
    'etc/skel/.profile': '# profile\n',
    'bin/bash': '',
    'usr/local/bin/tool': '',
  });
  assert.deepEqual(await applyStartState(root.root), { name: 'user', uid: 1000, gid: 1000, home: '/home/user' });
  assert.equal(await text(root, 'etc/passwd'), `${PASSWD}user:x:1000:1000::/home/user:/bin/bash\n`);
  assert.equal(await text(root, 'etc/group'), 'root:x:0:\nuser:x:1000:\n');
  assert.equal(await text(root, 'etc/shadow'), 'root:*:1::::::\nuser:*::0:99999:7:::\n');
  assert.equal(await text(root, 'etc/gshadow'), 'root:*::\nuser:!::\n');
  assert.equal((await stat(root.path('etc/shadow'))).mode & 0o777, 0o640);
  const rule = await stat(root.path('etc/sudoers.d/90-aenv-user'));
  assert.deepEqual([rule.mode & 0o777, rule.uid], [0o440, 0]);
  const [home, profile] = [await stat(root.path('home/user')), await stat(root.path('home/user/.profile'))];
  assert.deepEqual([home.uid, home.gid, home.mode & 0o777, profile.uid], [1000, 1000, 0o755, 1000]);
  assert.equal((await stat(root.path('usr/local/bin'))).mode & 0o777, 0o777);
  assert.equal((await stat(root.path('usr/local/bin/tool'))).mode & 0o777, 0o640);
  assert.equal((await stat(root.path('code'))).mode & 0o777, 0o777);
});

test('a second time changes nothing', async () => {
  await using root = await imageWith({ 'etc/passwd': PASSWD, 'etc/group': 'root:x:0:\n' });
  await applyStartState(root.root);
  const before = [await text(root, 'etc/passwd'), await text(root, 'etc/group')];
  await applyStartState(root.root);
  assert.deepEqual([await text(root, 'etc/passwd'), await text(root, 'etc/group')], before);
});

test('an account that is there stays as it is', async () => {
  await using root = await imageWith({ 'etc/passwd': `${PASSWD}user:x:77:78::/srv:/bin/zsh\n` });
  assert.deepEqual(await applyStartState(root.root), { name: 'user', uid: 77, gid: 78, home: '/srv' });
  assert.equal(await text(root, 'etc/passwd'), `${PASSWD}user:x:77:78::/srv:/bin/zsh\n`);
});

test('a taken id is passed over, and a shell is named that the image has', async () => {
  await using root = await imageWith({
    'etc/passwd': `${PASSWD}app:x:1000:1001::/:/bin/sh`,
    'etc/group': 'app:x:1001:\n',
  });
  assert.equal((await applyStartState(root.root))?.uid, 1002);
  assert.match(await text(root, 'etc/passwd'), /^app:.*\nuser:x:1002:1002::\/home\/user:\/bin\/sh\n$/m);
});

test('an image without accounts is left alone', async () => {
  await using root = await imageWith({ server: 'binary' });
  assert.equal(await applyStartState(root.root), undefined);
  assert.deepEqual(await readdir(root.root), ['server']);
});

test('links of the image never lead out of it', async () => {
  await using root = await imageWith({ 'etc/passwd.real': PASSWD, 'etc/group': '' });
  const outside = join(root.top, 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'shadow'), 'secret');
  await symlink('passwd.real', root.path('etc/passwd'));
  await symlink(join(outside, 'shadow'), root.path('etc/shadow'));
  await symlink(outside, root.path('home'));
  await symlink(outside, root.path('code'));
  await mkdir(root.path('usr'));
  await symlink(outside, root.path('usr/local'));
  await applyStartState(root.root);
  assert.equal(await readFile(join(outside, 'shadow'), 'utf8'), 'secret');
  assert.deepEqual(await readdir(outside), ['shadow']);
  assert.equal((await stat(outside)).mode & 0o777, 0o755);
  assert.ok((await lstat(root.path('etc/passwd'))).isSymbolicLink());
  assert.match(await text(root, 'etc/passwd.real'), /^user:/m);
});

test('account files that are no files, or far too large, do no harm', async () => {
  await using fifo = await TestRoot.make();
  await fifo.apply([[{ name: 'etc/passwd', flag: '6' }]]);
  assert.equal(await applyStartState(fifo.root), undefined);
  await using large = await imageWith({ 'etc/passwd': 'x'.repeat(2 ** 20 + 1) });
  await assert.rejects(applyStartState(large.root), { code: 'image_invalid' });
});

test('the working directory is made where the image lacks it', async () => {
  await using root = await imageWith({ server: 'binary' });
  await makeWorkingDir(root.root, '/srv/deep/app');
  assert.ok((await stat(root.path('srv/deep/app'))).isDirectory());
  await makeWorkingDir(root.root, '/srv/deep/app');
  await assert.rejects(makeWorkingDir(root.root, '/server/x'), { code: 'image_invalid' });
});
