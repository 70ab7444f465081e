import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccountTable, parseGroup, parsePasswd } from './accounts.ts';
import { resolvePath } from './paths.ts';
import { basicName, resolveUser } from './users.ts';

const TABLE = new AccountTable(
  parsePasswd(
    'root:x:0:0:root:/root:/bin/bash\n# user:x:9:9\nuser:x:1000:1000::/home/user:/bin/bash\nbad\nneg:x:-1:0::/\nnohome:x:7:7:::\nhuge:x:4294967295:0::/:\n',
  ),
  parseGroup('root:x:0:\nuser:x:1000:\nsudo:x:27:user,other\ndocker:x:999: user \nbroken:x::user\n'),
);

test('accounts come with all their groups; lines that are none are skipped', () => {
  assert.deepEqual(resolveUser(TABLE, 'user'), {
    name: 'user',
    uid: 1000,
    gid: 1000,
    home: '/home/user',
    groups: [1000, 27, 999],
  });
  assert.equal(resolveUser(TABLE, 'nohome')?.home, '/');
  for (const name of ['bad', 'neg', 'huge', 'ghost', '', '-1', '4294967295', '1e3'])
    assert.equal(resolveUser(TABLE, name), undefined, name);
});

test('numbers and name:group as images have them', () => {
  assert.equal(resolveUser(TABLE, '1000')?.name, 'user');
  assert.deepEqual(resolveUser(TABLE, '1234'), { name: '1234', uid: 1234, gid: 0, home: '/', groups: [0] });
  assert.deepEqual(resolveUser(TABLE, '1234:55'), { name: '1234', uid: 1234, gid: 55, home: '/', groups: [55] });
  assert.deepEqual(resolveUser(TABLE, 'user:sudo')?.groups, [27]);
  assert.equal(resolveUser(TABLE, 'user:ghost'), undefined);
});

test('names for numbers, and numbers where there is no name', () => {
  assert.deepEqual(
    [TABLE.userName(1000), TABLE.userName(5), TABLE.groupName(27), TABLE.groupName(5)],
    ['user', '5', 'sudo', '5'],
  );
});

test('the name of a Basic header; anything else is nobody in particular', () => {
  assert.equal(basicName(`Basic ${btoa('user:')}`), 'user');
  assert.equal(basicName(`basic ${btoa('user:pass:word')}`), 'user');
  assert.equal(basicName(`Basic ${btoa('user')}`), 'user');
  for (const value of [undefined, '', 'Bearer abc', 'Basic', 'Basic ???']) assert.equal(basicName(value), undefined);
});

test('paths: absolute, of the home, relative, empty, and what no file can be called', () => {
  const user = resolveUser(TABLE, 'user');
  assert.ok(user);
  const cases: [string, string][] = [
    ['/a/b/', '/a/b'],
    ['/a/../../b', '/b'],
    ['~', '/home/user'],
    ['~/x', '/home/user/x'],
    ['~x', '/home/user/~x'],
    ['x/./y', '/home/user/x/y'],
    ['..', '/home'],
    ['', '/home/user'],
    ['//a', '/a'],
  ];
  for (const [given, expected] of cases) assert.equal(resolvePath(given, user), expected, given);
  assert.equal(resolvePath('', user, '/work'), '/work');
  assert.equal(resolvePath('', user, 'work'), '/home/user/work');
  assert.equal(resolvePath('x', user, '/work'), '/home/user/x');
  for (const path of ['/a\0', `/${'n'.repeat(256)}`, `/${'é'.repeat(128)}`, `/${'x/'.repeat(2100)}`]) {
    assert.throws(() => resolvePath(path, user), { status: 400 });
  }
  assert.equal(resolvePath(`/${'n'.repeat(255)}`, user).length, 256);
});
