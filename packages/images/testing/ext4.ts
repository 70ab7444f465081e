import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '@aenv/platform/process/run.ts';
import { applyLayer } from '../ext4/apply/layer.ts';
import type { LayerLimits } from '../ext4/apply/limits.ts';
import { ImageFiles } from '../ext4/files/image-files.ts';
import { rootIdentity } from '../ext4/identity.ts';
import { BLOCK_SIZE } from '../ext4/model/geometry.ts';
import type { Node } from '../ext4/model/node.ts';
import { LOST_AND_FOUND, Tree } from '../ext4/model/tree.ts';
import type { BlockReader, BlockSink } from '../ext4/sink.ts';
import { writeChanges } from '../ext4/write-changes.ts';
import { pieces, type TestMember, tar } from './tar.ts';

/** A disk in memory. */
export class MemoryDisk implements BlockSink, BlockReader {
  readonly blocks = new Map<number, Buffer>();

  write(block: number, data: Uint8Array): undefined {
    if (data.length % BLOCK_SIZE !== 0) throw new Error('not whole blocks');
    for (let at = 0; at < data.length; at += BLOCK_SIZE) {
      this.blocks.set(block + at / BLOCK_SIZE, Buffer.from(data.subarray(at, at + BLOCK_SIZE)));
    }
  }

  async read(target: Uint8Array, offset: number): Promise<void> {
    for (let at = 0; at < target.length; at += BLOCK_SIZE) {
      target.set(this.blocks.get((offset + at) / BLOCK_SIZE) ?? Buffer.alloc(BLOCK_SIZE), at);
    }
  }
}

/** A file system in memory that test layers are applied to. */
export class TestImage {
  readonly disk = new MemoryDisk();
  readonly tree: Tree;
  readonly files: ImageFiles;

  constructor(sizeBytes = 64 * 2 ** 20) {
    this.tree = Tree.create(rootIdentity('test', sizeBytes));
    this.files = new ImageFiles(this.tree, this.disk, this.disk);
  }

  /** Applies layers, each a list of members, in order. */
  async apply(layers: readonly (readonly TestMember[])[], limits?: LayerLimits): Promise<void> {
    for (const members of layers) {
      const options = limits === undefined ? {} : { limits };
      await applyLayer(this.tree, pieces(tar(...members)), this.disk, options);
    }
  }

  find(path: string): Node | undefined {
    return this.files.find(path);
  }

  /** The node of a path itself, not what a link at its end points to. */
  node(path: string): Node | undefined {
    const at = path.lastIndexOf('/');
    return this.files.folder(path.slice(0, Math.max(0, at)))?.entries.get(path.slice(at + 1))?.node;
  }

  text(path: string): Promise<string | undefined> {
    return this.files.readText(path);
  }

  /** All paths but `lost+found`, sorted. */
  paths(): string[] {
    const found: string[] = [];
    const walk = (folder: Node, prefix: string): void => {
      if (folder.kind !== 'folder') return;
      for (const [name, { node }] of folder.entries) {
        if (prefix === '' && name === LOST_AND_FOUND) continue;
        found.push(`${prefix}${name}`);
        walk(node, `${prefix}${name}/`);
      }
    };
    walk(this.tree.root, '');
    return found.sort();
  }

  /** Writes what changed, and has all of it checked by e2fsck(8). */
  async check(): Promise<void> {
    await writeChanges(this.tree, this.disk);
    await using image = await this.toFile();
    await fsck(image.path);
  }

  async toFile(): Promise<TestFile> {
    const folder = await mkdtemp(join(tmpdir(), 'images-ext4-'));
    const path = join(folder, 'disk');
    await using file = await open(path, 'wx');
    await file.truncate(this.tree.identity.sizeBytes);
    for (const [block, data] of this.disk.blocks) await file.write(data, 0, data.length, block * BLOCK_SIZE);
    return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  }
}

export interface TestFile extends AsyncDisposable {
  readonly path: string;
}

/** Fails with what e2fsck(8) says when it finds anything at all. */
export async function fsck(path: string): Promise<void> {
  const { code, stdout } = await run(['e2fsck', '-fn', path], {
    okCodes: [0, 1, 4, 8, 12],
    env: { ...process.env, LC_ALL: 'C' },
  });
  // Code 0 does not say that nothing was found: questions that are answered "no" by -n may be optional ones.
  if (code !== 0 || /\? no/.test(stdout)) throw new Error(`e2fsck ended with ${code}:\n${stdout}`);
}
