import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { findDrive } from './find-drive.ts';
import { type MountPlaces, mountDrives } from './mount-drives.ts';

let root = '';
let places: MountPlaces;
let done: string[] = [];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'aenv-drives-')));
  places = {
    sysBlock: join(root, 'sys'),
    dev: join(root, 'dev'),
    mounts: join(root, 'mounts'),
    drivesDir: join(root, 'run'),
  };
  await mkdir(places.dev);
  await writeFile(places.mounts, `/dev/vda / ext4 rw 0 0\n`);
  done = [];
  await drive('vda', { label: 'aenv-root' });
  await drive('vdb', { label: 'aenv-drive-2' });
  await drive('vdc', { label: 'aenv-drive-1', serial: 'aenv-drive-7' });
  await drive('vdd', { serial: 'aenv-drive-3' });
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** A drive with an ext4 file system of a label, or with zeros. */
async function drive(name: string, { label, serial }: { label?: string; serial?: string }): Promise<void> {
  const bytes = Buffer.alloc(4096);
  if (label !== undefined) {
    bytes.writeUInt16LE(0xef53, 1024 + 56);
    bytes.write(label, 1024 + 120, 'latin1');
  }
  await writeFile(join(places.dev, name), bytes);
  await mkdir(join(places.sysBlock, name), { recursive: true });
  if (serial !== undefined) await writeFile(join(places.sysBlock, name, 'serial'), `${serial}\n`);
}

const mount = async (args: readonly string[]) => {
  done.push(args.join(' ').replaceAll(root, ''));
};
const unusable = (message: RegExp) => (error: unknown) =>
  error instanceof AenvError && error.code === 'drive_unusable' && message.test(error.message);

test('a drive is found by its label, and by its name where no file system has that', async () => {
  const found = async (label: string) => (await findDrive(label, places))?.replace(root, '');
  assert.equal(await found('aenv-drive-1'), '/dev/vdc');
  assert.equal(await found('aenv-drive-2'), '/dev/vdb');
  assert.equal(await found('aenv-drive-3'), '/dev/vdd');
  assert.equal(await found('aenv-drive-4'), undefined);
});

test('drives are mounted on folders that are made, outer ones first, and not a second time', async () => {
  const outer = { label: 'aenv-drive-1', mountPath: join(root, 'a b'), readOnly: false };
  const inner = { label: 'aenv-drive-2', mountPath: join(root, 'a b', 'inner'), readOnly: true };
  await mountDrives([inner, outer], mount, places);
  assert.deepEqual(done, ['/dev/vdc /a b rw', '/dev/vdb /a b/inner ro']);
  await writeFile(places.mounts, `${places.dev}/vdc ${root}/a\\040b ext4 rw 0 0\n`);
  await mountDrives([outer], mount, places);
  assert.equal(done.length, 2);
});

test('a folder of a drive is shown elsewhere; nothing leads out of the drive', async () => {
  const whole = join(places.drivesDir, 'aenv-drive-1');
  await mkdir(join(whole, 'data/set'), { recursive: true });
  await symlink('/', join(whole, 'out'));
  await writeFile(join(whole, 'file'), '');
  const shown = { label: 'aenv-drive-1', mountPath: join(root, 'shown'), readOnly: true };
  await mountDrives([{ ...shown, subPath: 'data/set' }], mount, places);
  assert.deepEqual(done, ['/dev/vdc /run/aenv-drive-1 ro', '/run/aenv-drive-1/data/set /shown bind']);
  for (const subPath of ['out', '../..', '.', 'file', 'absent']) {
    await assert.rejects(mountDrives([{ ...shown, subPath }], mount, places), unusable(/shown cannot be mounted/));
  }
});

test('what cannot be mounted is told with its path', async () => {
  await writeFile(join(root, 'file'), '');
  const at = (mountPath: string, label = 'aenv-drive-1') => [{ label, mountPath, readOnly: true }];
  await assert.rejects(mountDrives(at(join(root, 'file')), mount, places), unusable(/file cannot be mounted/));
  await assert.rejects(mountDrives(at(join(root, 'x'), 'no-drive'), mount, places), unusable(/no drive no-drive/));
  const failing = async () => {
    throw new Error('Invalid argument');
  };
  await assert.rejects(mountDrives(at(join(root, 'y')), failing, places), unusable(/y cannot.*Invalid argument/));
});
