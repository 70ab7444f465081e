import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AssetCache } from '../cache/asset-cache.ts';
import { buildNative } from './build.ts';

// inotify(7)
const IN_CREATE = 0x100;
const IN_MOVED = 0xc0;
const IN_MODIFY = 0x2;

let dir: string;
let native: string;
before(async () => {
  // Not every tmpfs has attributes of users; the folder of this file is on a real disk.
  dir = await mkdtemp(join(import.meta.dirname, '.records-test-'));
  native = (await buildNative({ cache: new AssetCache(dir), toolchain: 'of this test' })).path;
});
after(() => rm(dir, { recursive: true, force: true }));

/** An applet that is asked and answers record by record. */
function applet(name: string) {
  const child = spawn(native, [name], { stdio: ['pipe', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  return {
    ask: (...records: string[]) => child.stdin.write(records.map((record) => `${record}\0`).join('')),
    async take(count: number): Promise<string[]> {
      while (text.split('\0').length <= count) await once(child.stdout, 'data');
      const records = text.split('\0');
      text = records.slice(count).join('\0');
      return records.slice(0, count);
    },
    async end(): Promise<number | null> {
      child.stdin.end();
      const [code] = await once(child, 'exit');
      return code as number | null;
    },
  };
}

test('attributes are set, read and removed, with any bytes; only those of users', async () => {
  const file = join(dir, 'a\nb');
  await writeFile(file, '');
  const xattr = applet('xattr');
  xattr.ask(`set ${file}`, 'user.e2b.key', '00ff41', `get ${file}`);
  assert.deepEqual(await xattr.take(4), ['0', '1', 'user.e2b.key', '00ff41']);
  xattr.ask(`remove ${file}`, 'user.e2b.key', `get ${file}`, `remove ${file}`, 'user.e2b.key');
  assert.deepEqual(await xattr.take(3), ['0', '0', '-61']);
  xattr.ask(`set ${file}`, 'trusted.key', '00', `set ${file}`, 'user.key', 'xx', 'get /no/such');
  assert.deepEqual(await xattr.take(3), ['-22', '-22', '-2']);
  assert.equal(await xattr.end(), 0);
});

test('changes of a watched folder come as they happen, and not after it is no longer watched', async () => {
  const watch = applet('watch');
  watch.ask(`add ${IN_CREATE | IN_MOVED | IN_MODIFY} ${dir}`, 'add 2 /no/such');
  assert.deepEqual(await watch.take(2), [`added 1 ${dir}`, 'failed 2 /no/such']);
  await writeFile(join(dir, 'one'), 'x');
  assert.deepEqual(await watch.take(2), [`event 1 ${IN_CREATE} 0 one`, `event 1 ${IN_MODIFY} 0 one`]);
  await rename(join(dir, 'one'), join(dir, 'two\nlines'));
  const [from = '', to = ''] = await watch.take(2);
  assert.match(from, /^event 1 64 [1-9]\d* one$/);
  assert.match(to, /^event 1 128 [1-9]\d* two\nlines$/);
  assert.equal(from.split(' ')[3], to.split(' ')[3]);
  watch.ask('remove 1');
  assert.match((await watch.take(1))[0] ?? '', /^event 1 \d+ 0 $/, 'the last one says that the watch is gone');
  await writeFile(join(dir, 'three'), '');
  assert.equal(await watch.end(), 0);
});
