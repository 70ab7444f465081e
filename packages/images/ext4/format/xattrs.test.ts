import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { TestImage } from '../../testing/ext4.ts';
import { layOutXattrs } from './xattrs.ts';

const CAPABILITY = Buffer.from('0100000200200000000000000000000000000000', 'hex');

/** What debugfs(8) finds on the disk. */
async function shown(image: TestImage, path: string): Promise<string> {
  await image.check();
  await using disk = await image.toFile();
  const { stdout } = await run(['debugfs', '-R', `ea_list ${path}`, disk.path]);
  return stdout;
}

test('attributes are in the inode where they fit, else in a block, and empty ones are there too', async () => {
  const image = new TestImage();
  const xattr = (values: Record<string, string | Buffer>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [`SCHILY.xattr.${name}`, value]));
  await image.apply([
    [
      { name: 'small', data: '', pax: xattr({ 'security.capability': CAPABILITY, 'user.none': '' }) },
      { name: 'large', data: '', pax: xattr({ 'user.long': 'l'.repeat(4000), 'user.a': '1', 'trusted.t': 'x' }) },
    ],
  ]);
  assert.equal(image.node('small')?.xattrBlock, 0);
  assert.notEqual(image.node('large')?.xattrBlock, 0);
  const small = await shown(image, '/small');
  for (const line of ['security.capability (20)', 'user.none (0)']) assert.ok(small.includes(line), small);
  const large = await shown(image, '/large');
  for (const line of ['user.long (4000)', 'user.a (1)', 'trusted.t (1)']) assert.ok(large.includes(line), large);
});

test('labels and bookkeeping of the machine that made a layer are left out', async () => {
  const image = new TestImage();
  const names = [
    'security.selinux',
    'security.ima',
    'trusted.overlay.opaque',
    'system.nfs4_acl',
    'btrfs.x',
    'user.kept',
  ];
  await image.apply([
    [{ name: 'f', data: '', pax: Object.fromEntries(names.map((name) => [`SCHILY.xattr.${name}`, 'v'])) }],
  ]);
  const found = await shown(image, '/f');
  for (const name of names) assert.equal(found.includes(name), name === 'user.kept', name);
});

test('a later entry for the same file replaces its attributes and frees their block', async () => {
  const image = new TestImage();
  await image.apply([[{ name: 'd/', pax: { 'SCHILY.xattr.user.long': 'l'.repeat(2000) } }]]);
  const free = image.tree.blocks.free;
  await image.apply([[{ name: 'd/' }]]);
  assert.equal(image.tree.blocks.free, free + 1);
  assert.doesNotMatch(await shown(image, '/d'), /user\.long/);
});

test('names that no attribute can have are refused, and more than fits', () => {
  const one = (name: string, value = 'v') => layOutXattrs(new Map([[name, Buffer.from(value)]]));
  assert.throws(() => one('user.'), { code: 'image_invalid' });
  assert.throws(() => one(`user.${'n'.repeat(256)}`), { code: 'image_invalid' });
  assert.throws(() => one('user.a\0b'), { code: 'image_invalid' });
  assert.throws(() => one('user.a', 'v'.repeat(4096)), { code: 'image_invalid', message: /4 KiB/ });
});
