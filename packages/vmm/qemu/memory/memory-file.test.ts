import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { guestMemory, ramAddress } from './guest-memory.ts';
import { memoryFile } from './memory-file.ts';

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'memory-'));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, 'memory');
}

const uid = process.getuid?.() ?? 0;
const spec = (incarnation: string, memoryMb: number) => ({ incarnation, memoryMb, network: { uid } });
const install = (version: string) => ({ version, system: '', env: {} });

test('VMs of one size share one file of holes that nobody may write, also when they start at once', async (t) => {
  const folder = await folderOf(t);
  const names = ['a', 'b', 'c', 'd'];
  const files = await Promise.all(names.map((name) => memoryFile(folder, spec(name, 64), install('8.2.0'))));
  const other = await memoryFile(folder, spec('e', 128), install('10.0.2'));
  assert.equal(new Set(files.map(({ path }) => path)).size, 1);
  assert.notEqual(other.path, files[0]?.path);
  assert.deepEqual((await readdir(folder)).sort(), ['zero-128.mem', 'zero-64.mem']);
  const file = await stat(other.path);
  assert.deepEqual([file.size, file.blocks, file.mode & 0o777], [128 * 1024 * 1024, 0, 0o444]);
  assert.deepEqual([other.access, other.ownedByVm], ['none', false]);
});

test('a file of the wrong size is replaced, not changed under whoever maps it', async (t) => {
  const folder = await folderOf(t);
  const { path } = await memoryFile(folder, spec('a', 64), install('8.2.0'));
  await truncate(path, 4096);
  const before = await stat(path);
  await memoryFile(folder, spec('b', 64), install('8.2.0'));
  const after = await stat(path);
  assert.notEqual(after.ino, before.ino);
  assert.equal(after.size, 64 * 1024 * 1024);
});

test('an old QEMU, which opens the file for writing, gets one for each VM', async (t) => {
  const folder = await folderOf(t);
  const [a, b] = await Promise.all(['a', 'b'].map((name) => memoryFile(folder, spec(name, 64), install('7.2.22'))));
  assert.ok(a !== undefined && b !== undefined);
  assert.notEqual(a.path, b.path);
  assert.deepEqual([a.access, a.ownedByVm], ['write', true]);
  assert.equal((await stat(a.path)).mode & 0o777, 0o600);
});

const TABLE = [
  '              Block Name    PSize              Offset               Used              Total                HVA  RO',
  '                    ram0    4 KiB  0x0000000000000000 0x0000000020000000 0x0000000020000000 0x00007f8943e00000  rw',
  '                 pc.bios    4 KiB  0x0000000020000000 0x0000000000010000 0x0000000000010000 0x00007f8978600000  rw',
].join('\r\n');

test('QEMU says where it has the memory of its guest, and is only believed when there is such memory', async () => {
  assert.equal(ramAddress(TABLE, 512 * 1024 * 1024), 0x7f8943e00000);
  assert.equal(ramAddress(TABLE, 256 * 1024 * 1024), undefined);
  assert.equal(ramAddress('', 512 * 1024 * 1024), undefined);
  const qmp = { execute: async () => TABLE.replace('0x00007f8943e00000', '0x0000000000001000') };
  await assert.rejects(
    guestMemory(qmp, process.pid, '/nonexistent/zero-512.mem', 512 * 1024 * 1024),
    (error: Error & { code?: string }) => error.code === 'capture_failed',
  );
});
