import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import fc from 'fast-check';
import { AccountTable, parseGroup, parsePasswd } from './accounts.ts';
import { resolvePath } from './paths.ts';
import { resolveUser, type User } from './users.ts';

const HOME = '/home/user';
const USER: User = { name: 'user', uid: 1000, gid: 1000, home: HOME, groups: [1000] };

// Paths that look like what people write, and like what they should not.
const piece = fc.oneof(
  fc.constantFrom('.', '..', '~', '', 'a', '-rf', '%2F', '\\', ' ', '...', '~user', 'é', '🦀', '\0', '\n'),
  fc.string({ maxLength: 12 }),
  fc.nat(300).map((length) => 'n'.repeat(length)),
);
const path = fc
  .tuple(fc.constantFrom('', '/', '//', '~/', '~'), fc.array(piece, { maxLength: 30 }))
  .map(([start, pieces]) => start + pieces.join('/'));

function resolved(given: string): string | undefined {
  try {
    return resolvePath(given, USER);
  } catch (error) {
    assert.ok(error instanceof AenvError && error.status === 400, String(error));
    return undefined;
  }
}

test('whatever a client writes is an absolute path in its only form, or refused', () => {
  fc.assert(
    fc.property(path, (given) => {
      const absolute = resolved(given);
      if (absolute === undefined) return;
      assert.equal(absolute, posix.normalize(absolute));
      assert.ok(absolute.startsWith('/') && (absolute === '/' || !absolute.endsWith('/')));
      assert.ok(!absolute.includes('\0') && Buffer.byteLength(absolute) < 4096);
      for (const name of absolute.split('/'))
        assert.ok(Buffer.byteLength(name) <= 255 && name !== '..' && name !== '.');
      assert.equal(resolved(absolute), absolute, 'and it stays what it is');
    }),
    { numRuns: 1000 },
  );
});

test('a path that is not absolute and has no way up stays in the home', () => {
  fc.assert(
    fc.property(path, (given) => {
      const absolute = resolved(given);
      if (absolute === undefined || given.startsWith('/') || given.split('/').includes('..')) return;
      assert.ok(absolute === HOME || absolute.startsWith(`${HOME}/`), `${given} is ${absolute}`);
    }),
    { numRuns: 1000 },
  );
});

const word = fc.constantFrom(
  'root',
  'user',
  'app',
  '0',
  '1000',
  '1234',
  '-1',
  '4294967295',
  '00',
  '',
  'x',
  '%',
  'a b',
  '0x0',
);
const line = (fields: number) =>
  fc.array(word, { minLength: fields - 1, maxLength: fields + 1 }).map((words) => words.join(':'));

test('nobody becomes root without being named so, whatever is in passwd and group', () => {
  fc.assert(
    fc.property(
      fc.array(line(7), { maxLength: 6 }),
      fc.array(line(4), { maxLength: 6 }),
      fc.array(word, { minLength: 1, maxLength: 3 }),
      (passwd, group, parts) => {
        const table = new AccountTable(parsePasswd(passwd.join('\n')), parseGroup(group.join('\n')));
        const user = resolveUser(table, parts.join(':'));
        if (user === undefined) return;
        const [who = ''] = parts;
        for (const id of [user.uid, user.gid, ...user.groups]) {
          assert.ok(Number.isInteger(id) && id >= 0 && id < 0xffffffff, `id ${id}`);
        }
        assert.notEqual(user.home, '');
        if (user.uid !== 0) return;
        const account = table.byName(who);
        assert.ok(who === 'root' || Number(who) === 0 || account?.uid === 0, `${parts.join(':')} is root`);
      },
    ),
    { numRuns: 2000 },
  );
});

test('a user has the groups of its account and no others; a group that is named is the only one', () => {
  fc.assert(
    fc.property(fc.array(line(4), { maxLength: 8 }), word, word, (group, who, named) => {
      const table = new AccountTable(
        parsePasswd('root:x:0:0::/root:\nuser:x:1000:1000::/home/user:\n'),
        parseGroup(group.join('\n')),
      );
      const plain = resolveUser(table, who);
      if (plain !== undefined) {
        const allowed = new Set([
          plain.gid,
          ...parseGroup(group.join('\n'))
            .filter((g) => g.members.includes(plain.name))
            .map((g) => g.gid),
        ]);
        for (const gid of plain.groups) assert.ok(allowed.has(gid), `${who} is in ${gid}`);
      }
      const one = resolveUser(table, `${who}:${named}`);
      if (one !== undefined) assert.deepEqual(one.groups, [one.gid]);
    }),
    { numRuns: 1000 },
  );
});
