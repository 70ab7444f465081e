import assert from 'node:assert/strict';
import { chmod, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import type { BlockStore, NewDisk } from '../contract.ts';
import { createQcow2Store, type QemuImg } from './store.ts';

// Tests of this room cannot reach the room that installs QEMU; they take the one of its cache, or the host's.
const UID = 791_234;
const SIZE = 16 * 2 ** 20;
const assets = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';

let home = '';
let program: QemuImg;
let store: BlockStore;
const disk = ({ path, sizeBytes }: { path: string; sizeBytes: number }): NewDisk => ({
  origin: { kind: 'layers', layers: [path] },
  sizeBytes,
});

const base = { path: '', sizeBytes: SIZE };

async function findQemuImg(): Promise<QemuImg> {
  const { stdout } = await run(['find', assets, '-maxdepth', '3', '-path', '*/qemu-*/bin/qemu-img']);
  const [own] = stdout.trim().split('\n');
  if (own === undefined || own === '') return { path: 'qemu-img', env: {} };
  return { path: own, env: { LD_LIBRARY_PATH: join(own, '../../lib'), QEMU_MODULE_DIR: join(own, '../../modules') } };
}

/** qemu-img as the user that a VM runs as. */
async function asVm(...args: readonly string[]): Promise<string> {
  const ids = ['--reuid', String(UID), '--regid', String(UID), '--clear-groups'];
  const { stdout } = await run(['setpriv', ...ids, program.path, ...args], { env: { ...process.env, ...program.env } });
  return stdout;
}

before(async () => {
  home = await mkdtemp(join(tmpdir(), 'block-vm-test-'));
  await chmod(home, 0o711);
  program = await findQemuImg();
  base.path = join(home, 'base.raw');
  await using file = await open(base.path, 'w', 0o644);
  await file.truncate(SIZE);
  await file.write('base content', 4096);
  store = createQcow2Store({ dir: join(home, 'volumes'), qemuImg: () => program, log: silentLogger });
});

after(async () => {
  await rm(home, { recursive: true, force: true });
});

test('a VM reads the base through its volume, writes to the volume only, and nobody else reads it', async () => {
  const [one, two] = [await store.create('one', disk(base)), await store.create('two', disk(base))];
  const source = await one.attach(UID);
  const other = await two.attach(UID + 1);
  assert.ok(source.kind === 'file' && other.kind === 'file');
  assert.match(await asVm('info', '--output=json', source.path), new RegExp(`"virtual-size": ${SIZE}`));
  await asVm('compare', '-f', 'qcow2', '-F', 'raw', source.path, base.path);
  await asVm('bench', '-w', '-c', '16', '-s', '65536', '-f', 'qcow2', '-t', 'writeback', source.path);
  await assert.rejects(asVm('compare', '-f', 'qcow2', '-F', 'raw', source.path, base.path), /exit code 1/);
  await assert.rejects(asVm('info', other.path), /Permission denied/);
  await one.flushBeforeCapture();
  assert.ok((await one.allocatedBytes()) > (await two.allocatedBytes()));
  await asVm('check', source.path);
});

test('the user of a VM cannot list the volumes nor change a base', async () => {
  const ids = ['--reuid', String(UID), '--regid', String(UID), '--clear-groups'];
  await assert.rejects(run(['setpriv', ...ids, 'ls', join(home, 'volumes')]), /Permission denied/);
  await assert.rejects(run(['setpriv', ...ids, 'truncate', '-s', '0', base.path]), /Permission denied/);
});
