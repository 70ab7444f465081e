import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileLayer, LayerPool } from '@aenv/block/layers/stack/pool.ts';
import { run } from '@aenv/platform/process/run.ts';
import type { TestFile } from './ext4.ts';
import type { TreeListing } from './tree-listing.ts';

const CHUNK = 4 * 2 ** 20;
const LISTER = fileURLToPath(new URL('list-disk.ts', import.meta.url));

/** The disk that a stack of layers shows, as one sparse file. */
export async function flatDisk(layers: readonly { readonly path: string }[]): Promise<TestFile> {
  const folder = await mkdtemp(join(tmpdir(), 'images-disk-'));
  const path = join(folder, 'disk');
  const stack = await new LayerPool().openStack(layers.map((layer) => fileLayer(layer.path)));
  try {
    await using file = await open(path, 'wx');
    await file.truncate(stack.virtualSize);
    for (const { offset, length } of stack.dataRanges(0, stack.virtualSize)) {
      for (let done = 0; done < length; done += CHUNK) {
        const data = Buffer.alloc(Math.min(CHUNK, length - done));
        await stack.read(data, offset + done);
        await file.write(data, 0, data.length, offset + done);
      }
    }
  } finally {
    await stack.close();
  }
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

/** What the kernel finds in an ext4 image. Needs root. */
export async function listDisk(path: string): Promise<TreeListing> {
  const folder = await mkdtemp(join(tmpdir(), 'images-mount-'));
  try {
    const argv = ['unshare', '--mount', process.execPath, LISTER, path, folder] as const;
    const { stdout } = await run(argv, { timeoutMs: 10 * 60_000, maxOutput: 2 ** 28 });
    return new Map(JSON.parse(stdout) as [string, string][]);
  } finally {
    await rm(folder, { recursive: true });
  }
}
