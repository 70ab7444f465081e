import { join } from 'node:path';
import { diskOf } from '@aenv/node/snapshots/disks/disk-state.ts';
import { baseOf } from '@aenv/node/snapshots/repository/bases/memory-base.ts';
import { DEVICE_STATE_FILE, repositoryFolders } from '@aenv/node/snapshots/repository/layout.ts';
import { readAll } from '@aenv/node/snapshots/repository/manifest/shelf.ts';
import type { TestDaemon } from '../../tests/harness/daemon.ts';

/** The captured machine that sandboxes of `base` go on from: files that nobody changes. */
export interface CapturedMachine {
  readonly memoryBase: string;
  readonly memoryMb: number;
  readonly cpuCount: number;
  readonly deviceState: string;
  /** of its root, bottom first */
  readonly layers: readonly string[];
  readonly toolsDrive: string;
  /** what its envd asks of the host */
  readonly hostSecret: string;
}

/** @throws Error when the daemon has not captured it: one sandbox must have been made */
export async function capturedMachine(daemon: TestDaemon): Promise<CapturedMachine> {
  const folders = repositoryFolders(join(daemon.home, 'snapshots'));
  const { manifests } = await readAll([folders.snapshots]);
  const manifest = manifests.find(({ kind }) => kind === 'template');
  if (manifest === undefined) throw new Error('the daemon has no captured machine');
  if (manifest.memory.delta !== undefined) throw new Error('the captured machine has a memory delta');
  const disk = diskOf(manifest);
  const layers = disk.kind === 'layers' ? disk.layers.filter((layer) => typeof layer === 'string') : [];
  if (layers.length === 0) throw new Error('the disk of the captured machine is not in files');
  return {
    memoryBase: join(folders.memory, `${baseOf(manifest)}.mem`),
    memoryMb: manifest.memory.memoryMb,
    cpuCount: manifest.machine.cpuCount,
    deviceState: join(folders.snapshots, manifest.id, DEVICE_STATE_FILE),
    layers,
    toolsDrive: manifest.toolsDrive.path,
    hostSecret: manifest.envd.hostSecret,
  };
}
