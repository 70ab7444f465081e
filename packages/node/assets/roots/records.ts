import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { blockdFolders } from '@aenv/block/blockd/layout.ts';
import { DiskRecord, SnapshotRecord } from '@aenv/block/blockd/records/schema.ts';
import { isCode } from '@aenv/images/errors/is-code.ts';
import type { SnapshotManifest } from '../../snapshots/contract.ts';
import { diskOf } from '../../snapshots/disks/disk-state.ts';
import { repositoryFolders } from '../../snapshots/repository/layout.ts';
import { readAll } from '../../snapshots/repository/manifest/shelf.ts';

/** Where references to assets are found, and what was not readable there. */
export class References {
  /** who refers to a path, for people: `snapshot s1` */
  readonly users = new Map<string, Set<string>>();
  /** versions of the QEMU that captured machines go on with */
  readonly qemus = new Set<string>();
  /** files that may refer to anything: while there is one, nothing is known to be garbage */
  readonly unreadable = new Set<string>();

  add(path: string, user: string): void {
    const known = this.users.get(path);
    if (known === undefined) this.users.set(path, new Set([user]));
    else known.add(user);
  }
}

/** What the snapshots of a repository stand on. A folder that is not there has none. */
export async function addSnapshots(root: string, to: References): Promise<void> {
  const folders = repositoryFolders(root);
  for (const parent of [folders.snapshots, folders.transient]) {
    const { manifests, damaged } = await readAll([parent]).catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return { manifests: [], damaged: [] };
      throw error;
    });
    for (const { id } of damaged) to.unreadable.add(join(parent, id));
    for (const manifest of manifests) {
      try {
        for (const path of pathsOf(manifest)) to.add(path, nameOf(manifest));
        if (manifest.vmm.kind === 'qemu') to.qemus.add(manifest.vmm.build.version);
      } catch {
        to.unreadable.add(join(parent, manifest.id));
      }
    }
  }
}

function nameOf({ id, kind, source }: SnapshotManifest): string {
  if (kind === 'template') return `captured machine ${id}`;
  return kind === 'pause' ? `paused sandbox ${source.sandboxId ?? id}` : `snapshot ${id}`;
}

function pathsOf(manifest: SnapshotManifest): readonly string[] {
  const { kernel, toolsDrive, disk } = manifest;
  const origin = diskOf(manifest);
  const layers = origin.kind === 'layers' ? origin.layers.filter((layer) => typeof layer === 'string') : [];
  return [kernel.path, toolsDrive.path, ...disk.paths, ...layers];
}

/** What the disks and disk snapshots of a block daemon stand on. */
export async function addDisks(root: string, to: References): Promise<void> {
  const folders = blockdFolders(root, '');
  for (const [folder, schema] of [
    [folders.snapshots, SnapshotRecord],
    [folders.disks, DiskRecord],
  ] as const) {
    for (const path of await recordsIn(folder)) {
      const text = await readFile(path, 'utf8').catch((error: unknown) => {
        if (isCode(error, 'ENOENT')) return undefined;
        throw error;
      });
      if (text === undefined) continue;
      const record = schema.safeParse(toJson(text));
      if (!record.success) {
        to.unreadable.add(path);
        continue;
      }
      const { data } = record;
      const user = 'disk' in data ? `disk ${data.disk}` : `snapshot ${data.snapshot}`;
      for (const layer of data.layers) if (layer.kind === 'file') to.add(layer.path, user);
    }
  }
}

async function recordsIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  });
  return names.filter((name) => name.endsWith('.json') && !name.startsWith('.')).map((name) => join(folder, name));
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
