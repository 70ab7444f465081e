import assert from 'node:assert/strict';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { SUPERBLOCK_OFFSET, withLabel } from './label.ts';

test('file systems of others get a label, with checksums and without, and are as good as before', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-label-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const features of ['metadata_csum', '^metadata_csum']) {
    const path = join(folder, features);
    await using file = await open(path, 'wx+');
    await file.truncate(8 * 2 ** 20);
    await run(['/usr/sbin/mke2fs', '-q', '-t', 'ext4', '-b', '1024', '-L', 'a-longer-label', '-O', features, path]);
    const block = Buffer.alloc(4096);
    await file.read(block, 0, block.length, 0);
    const labelled = withLabel(block.subarray(SUPERBLOCK_OFFSET), 'short');
    assert.ok(labelled);
    await file.write(labelled, 0, labelled.length, SUPERBLOCK_OFFSET);
    await run(['/usr/sbin/e2fsck', '-fn', path]);
    assert.equal((await run(['/usr/sbin/e2label', path])).stdout.trim(), 'short');
  }
});

test('what is no superblock gets none, and labels that do not fit are refused', () => {
  assert.equal(withLabel(Buffer.alloc(3072, 1), 'label'), undefined);
  assert.equal(withLabel(Buffer.alloc(10), 'label'), undefined);
  for (const label of ['', 'seventeen-letters', 'a b', 'ä']) assert.throws(() => withLabel(Buffer.alloc(1024), label));
});
