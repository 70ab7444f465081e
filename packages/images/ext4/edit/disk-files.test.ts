import assert from 'node:assert/strict';
import { link, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { damaged, fuzz, randomOf } from '@aenv/block/testing/fuzz.ts';
import { prepareRoot } from '../../start-state/prepare.ts';
import { fsck, type TestFile } from '../../testing/ext4.ts';
import { debugfs, debugfsAll, foreignDisk, withDisk, writeFiles } from '../../testing/foreign-disk.ts';
import { crc32c, START } from '../format/checksum.ts';
import { DiskFiles } from './disk-files.ts';

const SIZE = 40 * 2 ** 20;
const BLOCK = 4096;
/** As accelerated-container-image makes them, as mke2fs does now, and as it did ten years ago. */
const KINDS = {
  'without checksums': ['-O', '^has_journal,^metadata_csum,64bit,sparse_super2', '-E', 'packed_meta_blocks=1'],
  'with checksums': ['-O', 'metadata_csum,64bit,metadata_csum_seed', '-g', '4096', '-G', '2'],
  'with checksums of groups': ['-O', 'uninit_bg,^metadata_csum,^64bit,^flex_bg', '-N', '2048', '-g', '2048'],
} as const;

const CONFIG = { env: {}, workingDir: '/srv/app', user: '', entrypoint: [], cmd: [], exposedPorts: [], labels: {} };
/** Just below a block, so that one more line does not fit. */
const PASSWD = `root:x:0:0::/root:/bin/sh\n${'#'.repeat(4060)}\n`;

async function fill(root: string): Promise<void> {
  const many = Array.from({ length: 600 }, (_, at) => [`etc/${'n'.repeat(20)}-${at}`, 'x'] as const);
  await writeFiles(root, {
    ...Object.fromEntries(many),
    'etc/passwd': PASSWD,
    'etc/group': 'root:x:0:\n',
    'etc/shadow': 'root:*:1:0:99999:7:::\n',
    'etc/sudoers': 'root ALL=(ALL) ALL\n',
    'etc/skel/.profile': 'p'.repeat(5000),
    'etc/skel/deep/file': 'deep',
    'usr/local/lib/python/x': 'x',
    'bin/bash': 'program',
  });
  await link(join(root, 'etc/group'), join(root, 'etc/group-'));
  await symlink('t'.repeat(100), join(root, 'etc/skel/far'));
  await symlink('/usr/bin', join(root, 'sbin'));
}

async function prepare(disk: TestFile) {
  return await withDisk(disk, async (raw) => {
    const files = await DiskFiles.open(raw, SIZE);
    const start = await prepareRoot(files, CONFIG);
    await files.setRootLabel();
    await files.writeTo(raw);
    return start;
  });
}

for (const [kind, args] of Object.entries(KINDS)) {
  test(`a root file system of somebody else gets the start state and stays sound: ${kind}`, async () => {
    await using disk = await foreignDisk(args, SIZE, fill);
    await fsck(disk.path);
    assert.deepEqual(await prepare(disk), { user: 'user', workdir: '/srv/app' });
    await fsck(disk.path);
    const read = (path: string) => debugfs(disk, `cat ${path}`);
    const [passwd, group, oldGroup, shadow, profile, deep, sudo, far, python, home, superblock] = await debugfsAll(
      disk,
      [
        ...['/etc/passwd', '/etc/group', '/etc/group-', '/etc/shadow'].map((path) => `cat ${path}`),
        ...['/home/user/.profile', '/home/user/deep/file', '/etc/sudoers.d/90-aenv-user'].map((path) => `cat ${path}`),
        ...['/home/user/far', '/usr/local/lib/python', '/home/user'].map((path) => `stat ${path}`),
        'show_super_stats -h',
      ],
    );
    assert.equal(passwd, `${PASSWD}user:x:1000:1000::/home/user:/bin/bash\n`);
    assert.equal(group, 'root:x:0:\nuser:x:1000:\n');
    assert.equal(oldGroup, 'root:x:0:\n');
    assert.match(shadow ?? '', /^root:\*:1:0:99999:7:::\nuser:\*:/);
    assert.equal(profile, 'p'.repeat(5000));
    assert.equal(deep, 'deep');
    assert.match(sudo ?? '', /NOPASSWD/);
    assert.match(far ?? '', /Type: symlink[\s\S]*Size: 100/);
    assert.match(python ?? '', /Mode: {2}0777/);
    assert.match(home ?? '', /Mode: {2}0755[\s\S]*User: {2}1000 {3}Group: {2}1000/);
    assert.match(superblock ?? '', /volume name: {3}aenv-root/);
    // Once more changes nothing.
    assert.deepEqual(await prepare(disk), { user: 'user', workdir: '/srv/app' });
    await fsck(disk.path);
    assert.equal(await read('/etc/passwd'), `${PASSWD}user:x:1000:1000::/home/user:/bin/bash\n`);
  });
}

test('many new names make a folder longer, and names that lead out of the image stay inside', async () => {
  await using disk = await foreignDisk(KINDS['with checksums'], SIZE, fill);
  await withDisk(disk, async (raw) => {
    const files = await DiskFiles.open(raw, SIZE);
    for (let at = 0; at < 120; at++) await files.writeText(`/etc/${'m'.repeat(200)}-${at}`, `${at}`, 0o600);
    await files.writeText('/sbin/../../../new/x', 'inside', 0o644);
    await files.writeText('/sbin/tool', 'tool', 0o755);
    await files.writeTo(raw);
  });
  await fsck(disk.path);
  assert.equal(await debugfs(disk, `cat /etc/${'m'.repeat(200)}-119`), '119');
  assert.equal(await debugfs(disk, 'cat /new/x'), 'inside');
  assert.equal(await debugfs(disk, 'cat /usr/bin/tool'), 'tool');
});

test('what is damaged, unusual or no file system is refused by name, and nothing else comes of it', async () => {
  await using disk = await foreignDisk(KINDS['with checksums'], SIZE, fill);
  const sound = await withDisk(disk, async (raw) => {
    const data = Buffer.alloc(SIZE);
    await raw.read(data, 0);
    return data;
  });
  const open = async (data: Buffer, read = new Set<number>()) => {
    const reader = {
      read: async (target: Uint8Array, offset: number) => {
        read.add(offset / BLOCK);
        target.set(data.subarray(offset, offset + target.length));
      },
    };
    const files = await DiskFiles.open(reader, SIZE);
    await prepareRoot(files, CONFIG);
    await files.writeTo({ write: () => undefined });
  };
  await open(sound);
  const invalid = { code: 'image_invalid', message: /block layers/ };
  await assert.rejects(open(Buffer.alloc(SIZE)), invalid);
  // The bit of a journal that has to be replayed.
  const dirty = Buffer.from(sound);
  dirty.writeUInt32LE(dirty.readUInt32LE(1024 + 96) | 4, 1024 + 96);
  await assert.rejects(open(dirty), { ...invalid, message: /journal to be replayed/ });
  for (const freeCount of [12, 16]) {
    const miscounted = Buffer.from(sound);
    miscounted.writeUInt32LE(0, 1024 + freeCount);
    miscounted.writeUInt32LE(crc32c(START, miscounted.subarray(1024, 2044)), 2044);
    await assert.rejects(open(miscounted), { ...invalid, message: /counts of its ext4/ });
  }
  // A folder that is found below itself, in two places.
  const looped = Buffer.from(sound);
  const inodeAt = (name: string) => looped.indexOf(`${String.fromCharCode(name.length)}\x02${name}`, 0, 'latin1') - 6;
  for (const name of ['python', 'lib']) looped.copy(looped, inodeAt(name), inodeAt('local'), inodeAt('local') + 4);
  await open(looped);
  // Structures that are read, each filled with what another reader might believe, then damaged in ways of all kinds.
  const read = new Set<number>();
  await open(sound, read);
  let refused = 0;
  const attempt = async (block: number, bytes: Buffer) => {
    const kept = Buffer.from(sound.subarray(block * BLOCK, (block + 1) * BLOCK));
    try {
      bytes.copy(sound, block * BLOCK, 0, BLOCK);
      await open(sound);
    } catch (error) {
      assert.ok(error instanceof Error && 'code' in error && error.code === 'image_invalid', String(error));
      refused++;
    } finally {
      kept.copy(sound, block * BLOCK);
    }
  };
  for (const block of read) for (const byte of [0x00, 0x55, 0xff]) await attempt(block, Buffer.alloc(BLOCK, byte));
  assert.ok(refused > read.size, `${refused} of ${3 * read.size} were refused`);
  const blocks = [...read];
  await fuzz({
    times: 20,
    memory: 256 * 2 ** 20,
    attempt: (seed) => {
      const random = randomOf(seed);
      const block = blocks[Math.floor(random() * blocks.length)] ?? 0;
      return attempt(block, damaged(sound.subarray(block * BLOCK, (block + 1) * BLOCK), random));
    },
  });
});
