import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, test } from 'node:test';
import { pack } from 'tar-stream';
import { CliError } from '../output/cli-error.ts';
import { packTree } from './pack.ts';
import { unpackTree } from './unpack.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-transfer-'));
  await mkdir(join(folder, 'from'));
  await mkdir(join(folder, 'to'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

const nothing = { onBytes() {} };

/** A tar with these raw entries, as a hostile guest might send it. */
function tarOf(entries: readonly { name: string; type?: 'file' | 'symlink' | 'link'; linkname?: string }[]): Readable {
  const tar = pack();
  for (const { name, type = 'file', linkname } of entries) {
    tar.entry({ name, type, ...(linkname === undefined ? {} : { linkname }) }, type === 'file' ? 'evil' : '');
  }
  tar.finalize();
  return Readable.from(tar);
}

test('a tree comes back with its links, modes, times and empty folders', async () => {
  const from = join(folder, 'from');
  await mkdir(join(from, 'empty'));
  await mkdir(join(from, 'sub'));
  await writeFile(join(from, 'sub', 'big'), Buffer.alloc(300_000, 'b'));
  await writeFile(join(from, 'plain'), 'text');
  await chmod(join(from, 'plain'), 0o600);
  await writeFile(join(from, 'setuid'), '');
  await chmod(join(from, 'setuid'), 0o4755);
  await link(join(from, 'plain'), join(from, 'sub', 'hard'));
  for (const [name, target] of Object.entries({ rel: 'plain', abs: '/etc/hosts', dangling: 'nowhere', loop: 'loop' })) {
    await symlink(target, join(from, name));
  }
  await utimes(join(from, 'plain'), 1_000_000_000, 1_234_567_890);
  await chmod(join(from, 'sub'), 0o500);
  await utimes(join(from, 'sub'), 1_000_000_000, 1_111_111_111);

  await unpackTree(packTree(from, '', { ...nothing, onSkipped: assert.fail }), join(folder, 'to'), nothing);

  const list = (root: string) =>
    execFileSync('find', ['.', '-mindepth', '1', '-printf', '%P %y %m %T@ %l\n'], { cwd: root, encoding: 'utf8' })
      .split('\n')
      .map((line) => line.replace(/(\d)\.\d+ /, '$1 '))
      .sort();
  assert.deepEqual(list(join(folder, 'to')), list(from));
  const [a, b] = await Promise.all(['plain', 'sub/hard'].map((name) => lstat(join(folder, 'to', name))));
  assert.equal(a?.ino, b?.ino);
});

test('a fifo and a name that is no UTF-8 are skipped and told', async () => {
  const from = join(folder, 'from');
  execFileSync('mkfifo', [join(from, 'pipe')]);
  await writeFile(Buffer.concat([Buffer.from(`${from}/bad`), Buffer.from([0xff])]), 'x');
  const skipped: string[] = [];
  await unpackTree(
    packTree(from, '', { ...nothing, onSkipped: (_p, why) => skipped.push(why) }),
    join(folder, 'to'),
    nothing,
  );
  assert.deepEqual(skipped.sort(), ['a fifo', 'the name is not UTF-8']);
  assert.deepEqual(await readdir(join(folder, 'to')), []);
});

test('a single file gets the name that was asked for', async () => {
  await writeFile(join(folder, 'from', 'a'), 'content');
  const tar = packTree(join(folder, 'from', 'a'), 'whatever', { ...nothing, onSkipped: assert.fail });
  await unpackTree(tar, join(folder, 'to'), { ...nothing, rename: 'b' });
  assert.equal(await readFile(join(folder, 'to', 'b'), 'utf8'), 'content');
});

for (const name of ['../x', '/x', 'a/../../x', './x', 'a//x']) {
  test(`an entry called ${name} is refused and nothing is written outside`, async () => {
    await assert.rejects(unpackTree(tarOf([{ name }]), join(folder, 'to'), nothing), CliError);
    assert.deepEqual((await readdir(folder)).sort(), ['from', 'to']);
  });
}

test('nothing is written through a link that the archive planted', async () => {
  const outside = join(folder, 'outside');
  await mkdir(outside);
  const tar = tarOf([{ name: 'l', type: 'symlink', linkname: outside }, { name: 'l/x' }]);
  await assert.rejects(unpackTree(tar, join(folder, 'to'), nothing), CliError);
  assert.deepEqual(await readdir(outside), []);
  assert.equal(await readlink(join(folder, 'to', 'l')), outside);
});

test('a file replaces a link of its name instead of writing to its target', async () => {
  await writeFile(join(folder, 'victim'), 'before');
  const tar = tarOf([{ name: 'l', type: 'symlink', linkname: join(folder, 'victim') }, { name: 'l' }]);
  await unpackTree(tar, join(folder, 'to'), nothing);
  assert.equal(await readFile(join(folder, 'victim'), 'utf8'), 'before');
  assert.equal(await readFile(join(folder, 'to', 'l'), 'utf8'), 'evil');
});

test('a hard link to something outside is refused', async () => {
  const tar = tarOf([{ name: 'h', type: 'link', linkname: '../victim' }]);
  await writeFile(join(folder, 'victim'), 'before');
  await assert.rejects(unpackTree(tar, join(folder, 'to'), nothing), CliError);
});

test('an archive that breaks off is an error', async () => {
  await writeFile(join(folder, 'from', 'a'), Buffer.alloc(100_000));
  const whole: Buffer[] = [];
  for await (const chunk of packTree(join(folder, 'from'), '', { ...nothing, onSkipped: assert.fail })) {
    whole.push(chunk as Buffer);
  }
  const cut = Readable.from([Buffer.concat(whole).subarray(0, 50_000)]);
  await assert.rejects(unpackTree(cut, join(folder, 'to'), nothing));
});
