import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestImage } from '../testing/ext4.ts';
import type { TestMember } from '../testing/tar.ts';
import { applyStartState, makeWorkingDir } from './apply.ts';

const PASSWD = 'root:x:0:0:root:/root:/bin/bash\n';

async function imageWith(files: Readonly<Record<string, string>>, ...more: TestMember[]): Promise<TestImage> {
  const image = new TestImage();
  await image.apply([[...Object.entries(files).map(([name, data]) => ({ name, data, mode: 0o640, gid: 3 })), ...more]]);
  return image;
}

test('an image gets the account user, with home, skeleton and sudo', async () => {
  const image = await imageWith({
    'etc/passwd': PASSWD,
    'etc/group': 'root:x:0:\n',
    'etc/shadow': 'root:*:1::::::\n',
    'etc/gshadow': 'root:*::\n',
    'etc/sudoers': '@includedir /etc/sudoers.d\n',
    'etc/skel/.profile': '# profile\n',
    'bin/bash': '',
    'usr/local/bin/tool': '',
  });
  assert.deepEqual(await applyStartState(image.files), { name: 'user', uid: 1000, gid: 1000, home: '/home/user' });
  assert.equal(await image.text('etc/passwd'), `${PASSWD}user:x:1000:1000::/home/user:/bin/bash\n`);
  assert.equal(await image.text('etc/group'), 'root:x:0:\nuser:x:1000:\n');
  assert.equal(await image.text('etc/shadow'), 'root:*:1::::::\nuser:*::0:99999:7:::\n');
  assert.equal(await image.text('etc/gshadow'), 'root:*::\nuser:!::\n');
  const facts = (path: string) => [image.node(path)?.mode, image.node(path)?.uid, image.node(path)?.gid];
  assert.deepEqual(facts('etc/shadow'), [0o640, 0, 3]);
  assert.deepEqual(facts('etc/sudoers.d/90-aenv-user'), [0o440, 0, 0]);
  assert.deepEqual(facts('home/user'), [0o755, 1000, 1000]);
  assert.deepEqual(facts('home/user/.profile'), [0o640, 1000, 1000]);
  assert.equal(await image.text('home/user/.profile'), '# profile\n');
  assert.equal(image.node('usr/local/bin')?.mode, 0o777);
  assert.equal(image.node('usr/local/bin/tool')?.mode, 0o640);
  assert.equal(image.node('code')?.mode, 0o777);
  await image.check();
});

test('a second time changes nothing', async () => {
  const image = await imageWith({ 'etc/passwd': PASSWD, 'etc/group': 'root:x:0:\n', 'etc/sudoers': '' });
  await applyStartState(image.files);
  const before = [await image.text('etc/passwd'), await image.text('etc/group'), image.tree.inodes.next];
  await applyStartState(image.files);
  assert.deepEqual([await image.text('etc/passwd'), await image.text('etc/group'), image.tree.inodes.next], before);
});

test('an account that is there stays as it is', async () => {
  const image = await imageWith({ 'etc/passwd': `${PASSWD}user:x:77:78::/srv:/bin/zsh\n` });
  assert.deepEqual(await applyStartState(image.files), { name: 'user', uid: 77, gid: 78, home: '/srv' });
  assert.equal(await image.text('etc/passwd'), `${PASSWD}user:x:77:78::/srv:/bin/zsh\n`);
});

test('a taken id is passed over, and a shell is named that the image has', async () => {
  const image = await imageWith({
    'etc/passwd': `${PASSWD}app:x:1000:1001::/:/bin/sh`,
    'etc/group': 'app:x:1001:\n',
  });
  assert.equal((await applyStartState(image.files))?.uid, 1002);
  assert.match((await image.text('etc/passwd')) ?? '', /^app:.*\nuser:x:1002:1002::\/home\/user:\/bin\/sh\n$/m);
});

test('an image without accounts is left alone', async () => {
  const image = await imageWith({ server: 'binary' });
  assert.equal(await applyStartState(image.files), undefined);
  assert.deepEqual(image.paths(), ['server']);
});

test('files are changed where links of the image lead, and other names of them keep the old content', async () => {
  const link = (name: string, linkName: string): TestMember => ({ name, flag: '2', linkName });
  const image = await imageWith(
    { 'etc/passwd.real': PASSWD, 'usr/etc/group': 'root:x:0:\n', 'data/users/x': '' },
    link('etc/passwd', 'passwd.real'),
    link('etc/group', '../../../usr/etc/group'),
    link('etc/shadow', '/nowhere/shadow'),
    link('home', '/data/users'),
    link('code', 'usr/new/code'),
    { name: 'etc/passwd-', flag: '1', linkName: 'etc/passwd.real' },
  );
  await applyStartState(image.files);
  assert.equal(image.node('etc/passwd')?.kind, 'symlink');
  assert.match((await image.text('etc/passwd.real')) ?? '', /^user:/m);
  assert.equal(await image.text('etc/passwd-'), PASSWD);
  assert.equal(await image.text('usr/etc/group'), 'root:x:0:\nuser:x:1000:\n');
  assert.equal(image.node('etc/shadow')?.kind, 'symlink');
  assert.equal(image.node('data/users/user')?.uid, 1000);
  assert.equal(image.node('usr/new/code')?.mode, 0o777);
  await image.check();
});

test('account files that are one and the same lose nothing', async () => {
  const image = await imageWith(
    { 'etc/passwd': PASSWD },
    ...['group', 'shadow', 'gshadow'].map((name) => ({ name: `etc/${name}`, flag: '2', linkName: 'passwd' })),
  );
  await applyStartState(image.files);
  assert.match((await image.text('etc/passwd')) ?? '', /^root:x:0:0:[\s\S]*^user:x:1000:1000:/m);
});

test('account files that are no files, or far too large, do no harm', async () => {
  const fifo = await imageWith({}, { name: 'etc/passwd', flag: '6' });
  assert.equal(await applyStartState(fifo.files), undefined);
  const large = await imageWith({ 'etc/passwd': 'x'.repeat(2 ** 20 + 1) });
  await assert.rejects(applyStartState(large.files), { code: 'image_invalid' });
  const folder = await imageWith({ 'etc/passwd': PASSWD, 'etc/group/x': '' });
  await assert.rejects(applyStartState(folder.files), { code: 'image_invalid', message: /group" is a folder/ });
});

test('the working directory is made where the image lacks it', async () => {
  const image = await imageWith({ server: 'binary' });
  await makeWorkingDir(image.files, '/srv/dé ep/app');
  await makeWorkingDir(image.files, '/srv/dé ep/app');
  const made = image.node(Buffer.from('srv/dé ep/app', 'utf8').toString('latin1'));
  assert.deepEqual([made?.kind, made?.mode], ['folder', 0o755]);
  await assert.rejects(makeWorkingDir(image.files, '/server/x'), { code: 'image_invalid' });
});
