import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ImageConfig } from '../oci/image-config.ts';
import { freeId, hasRecord, parseGroup, parsePasswd, withLine } from './accounts.ts';
import { startOf } from './start.ts';

const PASSWD = `root:x:0:0:root:/root:/bin/bash
# a comment
broken line
app:x:1000:1001::/srv/app:/bin/sh
weird:x:-1:5::/:
user:x:1003:1003::/home/user:/bin/bash
`;

test('well-formed lines of passwd and group count, others do not', () => {
  assert.deepEqual(
    parsePasswd(PASSWD).map(({ name, uid, gid, home }) => [name, uid, gid, home].join(' ')),
    ['root 0 0 /root', 'app 1000 1001 /srv/app', 'user 1003 1003 /home/user'],
  );
  assert.deepEqual(parseGroup('root:x:0:\n:x:1:\nsudo:x:27:a,b\nnis:+\n'), [
    { name: 'root', gid: 0 },
    { name: 'sudo', gid: 27 },
  ]);
});

test('a free id is none of an account or a group', () => {
  assert.equal(freeId(parsePasswd(PASSWD), [{ name: 'g', gid: 1002 }]), 1004);
  assert.equal(freeId([], []), 1000);
});

test('a line is added to files that end with a newline and to those that do not', () => {
  assert.equal(withLine('a\n', 'b'), 'a\nb\n');
  assert.equal(withLine('a', 'b'), 'a\nb\n');
  assert.equal(withLine('', 'b'), 'b\n');
  assert.ok(hasRecord(PASSWD, 'app'));
  assert.ok(!hasRecord(PASSWD, 'ap'));
});

const config = (user: string, workingDir = ''): ImageConfig => ({
  ...{ env: { A: '1' }, workingDir, user, entrypoint: [], cmd: [], exposedPorts: [], labels: {} },
});

test('what the image says of user and folder wins, then come E2B’s account and root', () => {
  const accounts = parsePasswd(PASSWD);
  const start = (user: string, workdir?: string, known = accounts) => {
    const result = startOf(config(user, workdir), known);
    return `${result.user} ${result.workdir}`;
  };
  assert.equal(start(''), 'user /home/user');
  assert.equal(start('', '/'), 'user /home/user');
  assert.equal(start('app'), 'app /srv/app');
  assert.equal(start('app:staff', '/data'), 'app /data');
  assert.equal(start('0'), 'root /root');
  assert.equal(start('1234'), '1234 /');
  assert.equal(start('ghost'), 'user /home/user');
  assert.equal(start('', '', []), 'root /');
  assert.equal(start('ghost', '/w', []), 'root /w');
  assert.deepEqual(startOf(config(''), []).envVars, { A: '1' });
});
