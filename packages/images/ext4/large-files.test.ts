import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { TestImage } from '../testing/ext4.ts';
import { member } from '../testing/tar.ts';
import { applyLayer } from './apply/layer.ts';

const GIB = 2 ** 30;
const SIZE = 5 * GIB + 3;

/** The node of `large`: its content is at the start, beyond 4 GiB and at the end. */
async function check(image: TestImage): Promise<void> {
  const file = image.node('large');
  assert.ok(file?.kind === 'file');
  assert.equal(file.size, SIZE);
  assert.deepEqual(
    file.extents.map(({ logical, count }) => [logical, count]),
    [
      [0, 1],
      [(4 * GIB) / 4096, 1],
      [(5 * GIB) / 4096, 1],
    ],
  );
  const parts: string[] = [];
  for (const { physical } of file.extents) parts.push(image.disk.blocks.get(physical)?.toString('latin1', 0, 5) ?? '');
  assert.deepEqual(parts, ['start', 'above', 'end\0\0']);
  await image.check();
}

test('a sparse file of more than 4 GiB has the right size, and takes what its content takes', async () => {
  const top = await mkdtemp(join(tmpdir(), 'images-large-'));
  try {
    {
      await using file = await open(join(top, 'large'), 'wx');
      for (const [text, at] of [
        ['start', 0],
        ['above', 4 * GIB],
        ['end', 5 * GIB],
      ] as const)
        await file.write(text, at);
    }
    const archive = join(top, 'archive.tar');
    await run(['tar', '-C', top, '--sparse', '--format=posix', '-cf', archive, 'large']);
    const image = new TestImage();
    await applyLayer(image.tree, createReadStream(archive), image.disk);
    await check(image);
  } finally {
    await rm(top, { recursive: true });
  }
});

test('so does one that is stored with all its zeros', async () => {
  const image = new TestImage();
  await applyLayer(image.tree, stored(), image.disk);
  await check(image);
});

async function* stored(): AsyncGenerator<Buffer> {
  yield member({ name: 'large', pax: { size: String(SIZE) } });
  const chunk = Buffer.alloc(2 ** 20);
  for (let at = 0; at < 5 * GIB; at += chunk.length) {
    const text = at === 0 ? 'start' : at === 4 * GIB ? 'above' : '';
    yield text === '' ? chunk : Buffer.concat([Buffer.from(text), chunk.subarray(text.length)]);
  }
  yield Buffer.concat([Buffer.from('end'), Buffer.alloc(509 + 1024)]);
}
