import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { BlockStore, NewDisk } from '../contract.ts';
import { createQcow2Store } from './store.ts';

let home = '';
let base = { path: '', sizeBytes: 1 << 20 };

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'block-test-'));
  await chmod(home, 0o755);
  base = { path: join(home, 'base.ext4'), sizeBytes: 1 << 20 };
  await writeFile(base.path, 'base');
});

/** A new disk over one file. */
const disk = ({ path, sizeBytes }: { path: string; sizeBytes: number }): NewDisk => ({
  origin: { kind: 'layers', layers: [path] },
  sizeBytes,
});

afterEach(async () => {
  await rm(home, { recursive: true, force: true });
});

/** A store whose qemu-img is a script that sees the real arguments. */
async function storeWith(script: string): Promise<BlockStore> {
  const path = join(home, 'qemu-img');
  await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return createQcow2Store({
    dir: join(home, 'volumes'),
    qemuImg: () => ({ path, env: { MARK: 'from-env' } }),
    log: silentLogger,
  });
}

/** Writes its arguments where the volume should be: the name is the last but one. */
const RECORDING = 'for a; do prev=$last; last=$a; done; { echo "$MARK"; printf "%s\\n" "$@"; } > "$prev"';

test('a volume is made over its base with the base size, and owned by nobody else', async () => {
  const store = await storeWith(RECORDING);
  const volume = await store.create('i123', disk(base));
  const path = join(home, 'volumes', 'i123.qcow2');
  const args = (await readFile(path, 'utf8')).trim().split('\n');
  assert.deepEqual(args, [
    'from-env',
    ...['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', base.path, `${path}.new`, '1048576'],
  ]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await stat(join(home, 'volumes'))).mode & 0o777, 0o711);
  const source = await volume.attach(process.getuid?.() ?? 0);
  assert.deepEqual(source, { kind: 'file', path, format: 'qcow2', readOnly: false });
  assert.ok((await volume.allocatedBytes()) > 0);
});

test('volumes are listed until they are removed, and removal may be repeated', async () => {
  const store = await storeWith(RECORDING);
  assert.deepEqual(await store.list(), []);
  const first = await store.create('b-1', disk(base));
  await store.create('a-1', disk(base));
  assert.deepEqual(await store.list(), ['a-1', 'b-1']);
  await first.remove();
  await first.remove();
  await store.remove('never-there');
  assert.deepEqual(await store.list(), ['a-1']);
});

test('what a crash left half written is listed too, so that it can be removed', async () => {
  const store = await storeWith(RECORDING);
  await mkdir(join(home, 'volumes'));
  await writeFile(join(home, 'volumes', 'x.qcow2.new'), '');
  await writeFile(join(home, 'volumes', 'notes.txt'), '');
  assert.deepEqual(await store.list(), ['x']);
  await store.remove('x');
  assert.deepEqual(await store.list(), []);
});

test('a failed creation leaves nothing and carries the last words of qemu-img', async () => {
  const store = await storeWith(`${RECORDING}; echo "qemu-img: Image is bad" >&2; exit 1`);
  await assert.rejects(store.create('i1', disk(base)), { code: 'host_command_failed', message: /Image is bad/ });
  assert.deepEqual(await store.list(), []);
});

test('a full disk is told apart from other failures', async () => {
  const store = await storeWith('echo "qemu-img: No space left on device" >&2; exit 1');
  await assert.rejects(store.create('i1', disk(base)), { code: 'no_space' });
});

test('a volume is never made twice', async () => {
  const store = await storeWith(RECORDING);
  await store.create('i1', disk(base));
  await assert.rejects(store.create('i1', disk(base)), { code: 'internal', message: /exists already/ });
});

test('ids that are not names of volumes are refused', async () => {
  const store = await storeWith(RECORDING);
  for (const id of ['', '../x', 'A', 'a/b', '.x', 'a'.repeat(200)]) {
    await assert.rejects(store.create(id, disk(base)), { code: 'internal' }, id);
    await assert.rejects(store.remove(id), { code: 'internal' }, id);
  }
});

test('a base behind a closed folder is refused with the folder and the command that opens it', async () => {
  const store = await storeWith(RECORDING);
  const closed = join(home, 'closed');
  await mkdir(closed, { mode: 0o700 });
  const hidden = { path: join(closed, 'base.ext4'), sizeBytes: 1 };
  await assert.rejects(store.create('i1', disk(hidden)), (error: Error & { code?: string; remediation?: string }) => {
    assert.equal(error.code, 'host_unsupported');
    assert.ok(error.message.includes(closed));
    assert.ok(error.remediation?.includes(`chmod o+x ${closed}`));
    return true;
  });
});
