import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, lstat, mkdtemp, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { childEvent } from '@aenv/platform/testing/child-event.ts';
import { nativeForTests } from '../testing/native.ts';

// inotify(7)
const IN_CREATE = 0x100;
const IN_MOVED_FROM = 0x40;
const IN_MOVED_TO = 0x80;
const IN_MODIFY = 0x2;
const IN_IGNORED = 0x8000;

let dir: string;
let native: string;
before(async () => {
  // Not every tmpfs has attributes of users; the folder of this file is on a real disk.
  dir = await mkdtemp(join(import.meta.dirname, '.records-test-'));
  native = (await nativeForTests(dir)).path;
});
after(() => rm(dir, { recursive: true, force: true }));

/** An applet that is asked in records; `take` waits until its output is one that `parse` understands. */
function applet(name: string) {
  const child = spawn(native, [name], { stdio: ['pipe', 'pipe', 'inherit'] });
  let output = Buffer.alloc(0);
  child.stdout.on('data', (more: Buffer) => {
    output = Buffer.concat([output, more]);
  });
  return {
    ask: (...records: string[]) => child.stdin.write(records.map((record) => `${record}\0`).join('')),
    async take(count: number): Promise<string[]> {
      while (output.toString('latin1').split('\0').length <= count) await childEvent(child, child.stdout, 'data');
      const records = output.toString().split('\0');
      output = Buffer.from(records.slice(count).join('\0'));
      return records.slice(0, count);
    },
    /** struct inotify_event */
    async event(): Promise<{ watch: number; mask: number; cookie: number; name: string }> {
      while (output.length < 16 || output.length < 16 + output.readUInt32LE(12))
        await childEvent(child, child.stdout, 'data');
      const end = 16 + output.readUInt32LE(12);
      const name = output.toString('utf8', 16, end).replace(/\0+$/, '');
      const event = {
        watch: output.readInt32LE(0),
        mask: output.readUInt32LE(4),
        cookie: output.readUInt32LE(8),
        name,
      };
      output = output.subarray(end);
      return event;
    },
    async end(): Promise<number | null> {
      child.stdin.end();
      const [code] = await once(child, 'exit');
      return code as number | null;
    },
  };
}

const python = (code: string, ...args: string[]) =>
  execFileSync('/usr/bin/python3', ['-ISc', `import os, sys\n${code}`, ...args], { encoding: 'utf8' }).trim();

test('attributes are set and read; those that are not metadata, and those with a NUL, are not shown', async () => {
  const file = join(dir, 'a\nb');
  await writeFile(file, '');
  await symlink(file, join(dir, 'link'));
  const xattr = applet('xattr');
  xattr.ask(`set ${file}`, 'user.e2b.key', 'é = "1"', `get ${file}`);
  assert.deepEqual(await xattr.take(4), ['0', 'user.e2b.key', 'é = "1"', '0']);
  python('for n, v in (("user.other", b"x"), ("user.e2b.nul", b"a\\0b")): os.setxattr(sys.argv[1], n, v)', file);
  xattr.ask(`get ${file}`, 'get /no/such', `get ${join(dir, 'link')}`, 'get /proc/self/status');
  assert.deepEqual(await xattr.take(5), ['user.e2b.key', 'é = "1"', '0', '2', '0']);
  assert.match((await xattr.take(1))[0] ?? '', /^\d+$/, 'a file system without attributes');
  xattr.ask('set /no/such', 'user.e2b.key', '', `set ${file}`, 'user.', 'x', `set ${file}`, 'nosuch.key', 'x');
  assert.deepEqual(await xattr.take(3), ['2', '22', '95']);
  assert.equal(await xattr.end(), 0);
});

test('a thousand requests at once are answered in their order', async () => {
  const xattr = applet('xattr');
  const files = Array.from({ length: 1000 }, (_, index) => join(dir, `many-${index}`));
  for (const file of files) await writeFile(file, '');
  xattr.ask(...files.flatMap((file, index) => [`set ${file}`, 'user.e2b.n', String(index)]));
  assert.deepEqual(new Set(await xattr.take(1000)), new Set(['0']));
  xattr.ask(...files.map((file) => `get ${file}`));
  assert.deepEqual(
    await xattr.take(3000),
    files.flatMap((_, index) => ['user.e2b.n', String(index), '0']),
  );
  assert.equal(await xattr.end(), 0);
});

test('copy gives a file the owner, the attributes, the mode and the times of another one, to the nanosecond', async () => {
  const [from, to] = [join(dir, 'from'), join(dir, 'to')];
  await writeFile(from, '');
  await writeFile(to, '');
  python(
    'os.setxattr(sys.argv[1], "user.any", bytes(range(256))); os.setxattr(sys.argv[1], "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))',
    from,
  );
  await chown(from, 65534, 12345);
  python(
    'os.setxattr(sys.argv[1], "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))',
    from,
  );
  await chmod(from, 0o4751);
  python('os.utime(sys.argv[1], ns=(1700000000123456789, -999999999))', from);
  await symlink('nowhere', join(dir, 'from-link'));
  await symlink('nowhere', join(dir, 'to-link'));
  python('os.utime(sys.argv[1], ns=(1, 2), follow_symlinks=False)', join(dir, 'from-link'));
  const xattr = applet('xattr');
  xattr.ask(`copy ${from}`, to, `copy ${join(dir, 'from-link')}`, join(dir, 'to-link'), `copy ${from}`, '/no/such');
  assert.deepEqual(await xattr.take(3), ['0', '0', '2']);
  const copied = await stat(to, { bigint: true });
  assert.deepEqual([copied.uid, copied.gid, copied.mode & 0o7777n], [65534n, 12345n, 0o4751n]);
  assert.deepEqual([copied.atimeNs, copied.mtimeNs], [1700000000123456789n, -999999999n]);
  assert.equal((await lstat(join(dir, 'to-link'), { bigint: true })).mtimeNs, 2n);
  const shown = python('print({n: os.getxattr(sys.argv[1], n).hex() for n in sorted(os.listxattr(sys.argv[1]))})', to);
  assert.equal(
    shown,
    python('print({n: os.getxattr(sys.argv[1], n).hex() for n in sorted(os.listxattr(sys.argv[1]))})', from),
  );
  assert.match(shown, /security\.capability.*user\.any/);
  assert.equal(await xattr.end(), 0);
});

test('changes of a watched folder come as they happen, and not after it is no longer watched', async () => {
  const watch = applet('watch');
  const folder = await mkdtemp(join(dir, 'watched-'));
  watch.ask(`${IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY} ${folder}`, '2 /no/such');
  assert.deepEqual(await watch.event(), { watch: 1, mask: 0, cookie: 0, name: '' });
  assert.deepEqual(await watch.event(), { watch: -2, mask: 0, cookie: 0, name: '' });
  await writeFile(join(folder, 'one'), 'x');
  assert.deepEqual(await watch.event(), { watch: 1, mask: IN_CREATE, cookie: 0, name: 'one' });
  assert.deepEqual(await watch.event(), { watch: 1, mask: IN_MODIFY, cookie: 0, name: 'one' });
  await rename(join(folder, 'one'), join(folder, 'two\nlines'));
  const [from, to] = [await watch.event(), await watch.event()];
  assert.deepEqual([from.mask, from.name, to.mask, to.name], [IN_MOVED_FROM, 'one', IN_MOVED_TO, 'two\nlines']);
  assert.ok(from.cookie === to.cookie && from.cookie > 0);
  watch.ask('0 1');
  assert.deepEqual(await watch.event(), { watch: 0, mask: 0, cookie: 0, name: '' });
  assert.equal((await watch.event()).mask, IN_IGNORED);
  await writeFile(join(folder, 'three'), '');
  watch.ask('0 1');
  assert.deepEqual(await watch.event(), { watch: -22, mask: 0, cookie: 0, name: '' });
  assert.equal(await watch.end(), 0);
});

test('an answer comes after all that happened before its request, however much that is', async () => {
  const watch = applet('watch');
  const folder = await mkdtemp(join(dir, 'busy-'));
  watch.ask(`${IN_CREATE} ${folder}`);
  await watch.event();
  for (let round = 0; round < 20; round++) {
    for (let index = 0; index < 50; index++) await writeFile(join(folder, `${round}-${index}`), '');
    watch.ask('0 0');
    for (let index = 0; index < 50; index++) assert.equal((await watch.event()).name, `${round}-${index}`);
    assert.equal((await watch.event()).mask, 0);
  }
  assert.equal(await watch.end(), 0);
});
