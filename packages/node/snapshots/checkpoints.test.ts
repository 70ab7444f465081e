import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { StorageHost } from '@aenv/block/client/testing/fixture.ts';
import type { BlockDevice, DiskOrigin } from '@aenv/block/contract.ts';
import { NbdClient } from '@aenv/block/nbd/testing/client.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { MicroVm } from '@aenv/vmm/contract/micro-vm.ts';
import type { CaptureRequest, Machine } from '../sandboxes/checkpoints/contract.ts';
import type { MachineDrive } from '../sandboxes/drives/contract.ts';
import { hasCheckpoint, NodeCheckpoints } from './checkpoints.ts';
import { DiskSpace } from './disk-space.ts';
import { HOST, Lab, MEMORY_MB } from './repository/testing/lab.ts';

const SIZE_MB = 64;
const sizeBytes = SIZE_MB * 2 ** 20;
const uid = process.getuid?.() ?? 0;
const EMPTY: DiskOrigin = { kind: 'layers', layers: [] };

/** A machine whose memory is a test's, on disks of a real block daemon. */
class Bed implements AsyncDisposable {
  readonly lab: Lab;
  readonly storage: StorageHost;
  readonly checkpoints: NodeCheckpoints;
  readonly machine: Machine;

  private constructor(lab: Lab, storage: StorageHost, machine: Machine) {
    this.lab = lab;
    this.storage = storage;
    this.machine = machine;
    const artefact = (name: string) => ({ digest: name, path: join(lab.folder, name) });
    this.checkpoints = new NodeCheckpoints({
      ...{ repository: lab.repository, volumes: storage.store, host: HOST },
      guests: { freeze: async () => {}, release: async () => {}, sync: async () => {} },
      log: silentLogger,
      space: new DiskSpace({ folder: lab.folder, keepFreeBytes: 0, readFree: async () => 2 ** 40 }),
      boot: { kernel: artefact('kernel'), toolsDrive: artefact('tools') },
    });
  }

  static async open(drives: number): Promise<Bed> {
    const lab = await Lab.open();
    const storage = await StorageHost.open();
    const volume = await storage.store.create('root', { origin: EMPTY, sizeBytes });
    const attached: MachineDrive[] = [];
    for (let number = 1; number <= drives; number++) {
      const drive = {
        ...{ driveId: `d${number}`, label: `aenv-drive-${number}`, mountPath: `/mnt/d${number}` },
        ...{ readOnly: number % 2 === 1, sizeMb: SIZE_MB },
      };
      attached.push({ drive, volume: await storage.store.create(`root-${number}`, { origin: EMPTY, sizeBytes }) });
    }
    const vm = {
      record: { memoryBase: lab.zeros },
      pause: async () => {},
      resume: async () => {},
      privateBytes: async () => 4096,
      capture: async (draft: Parameters<MicroVm['capture']>[0]) => {
        await lab.capture(draft as Parameters<Lab['capture']>[0], [{ page: 1, count: 1, value: 7 }]);
      },
    } as unknown as MicroVm;
    return new Bed(lab, storage, { vm, volume, drives: attached, address: '127.0.0.1' });
  }

  get disks(): readonly BlockDevice[] {
    return [this.machine.volume, ...this.machine.drives.map(({ volume }) => volume)];
  }

  request(id: string, machine = this.machine): CaptureRequest {
    const then = 'stay_paused';
    return {
      ...{ id, kind: 'pause', machine, sandboxId: 'root', templateId: 't', cpuCount: 1, then },
      ...{ memoryMb: MEMORY_MB, diskSizeMb: SIZE_MB, envd: { hostSecret: 's', version: '0.6.13' } },
    };
  }

  async write(disk: BlockDevice, value: number): Promise<void> {
    await using client = await connect(disk);
    await client.write(0, Buffer.alloc(4096, value));
  }

  async firstByteOf(origin: DiskOrigin, id: string): Promise<number | undefined> {
    const disk = await this.storage.store.create(id, { origin, sizeBytes });
    await using client = await connect(disk);
    return (await client.read(0, 4096))[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.storage[Symbol.asyncDispose]();
    await this.lab[Symbol.asyncDispose]();
  }
}

async function connect(disk: BlockDevice): Promise<NbdClient> {
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  return await NbdClient.connect(source.socket, { structured: true });
}

const C1 = { id: 'c1', memory: true };

test('a checkpoint has root and drives of one instant, whatever is written to them later, and leaves none behind', async () => {
  await using bed = await Bed.open(3);
  const { checkpoints, storage, lab } = bed;
  for (const [at, disk] of bed.disks.entries()) await bed.write(disk, at + 1);
  await checkpoints.capture(bed.request('c1'));
  for (const disk of bed.disks) await bed.write(disk, 99);
  assert.equal(await hasCheckpoint(lab.repository, storage.store, C1, 3), true);
  const opened = await checkpoints.open('c1');
  assert.deepEqual(
    opened.drives.map(({ drive }) => drive),
    bed.machine.drives.map(({ drive }) => drive),
  );
  const origins = [opened.disk, ...opened.drives.map(({ disk }) => disk)];
  const found = [];
  for (const [at, origin] of origins.entries()) found.push(await bed.firstByteOf(origin, `again-${at}`));
  assert.deepEqual(found, [1, 2, 3, 4]);
  await opened.close();
  const { machine } = await lab.repository.get('c1');
  assert.deepEqual(machine.drives, ['root', 'tools', 'aenv-drive-1', 'aenv-drive-2', 'aenv-drive-3']);

  const disksAlone = { ...C1, memory: false };
  assert.equal(await hasCheckpoint(lab.repository, storage.store, disksAlone, 3), true);
  await storage.store.removeSnapshot('c1.2');
  assert.equal(await hasCheckpoint(lab.repository, storage.store, disksAlone, 3), false);
  assert.equal(await hasCheckpoint(lab.repository, storage.store, C1, 3), false, 'one disk of it is gone');
  await checkpoints.remove('c1');
  assert.deepEqual([await storage.store.listSnapshots(), await lab.repository.list()], [[], []]);
});

test('a machine without drives has the manifest of before; a drive that cannot be captured fails the whole', async () => {
  await using bed = await Bed.open(2);
  await bed.checkpoints.capture(bed.request('c0', { ...bed.machine, drives: [] }));
  assert.deepEqual((await bed.lab.repository.get('c0')).disk.state, { version: 1, snapshot: 'c0' });
  await bed.checkpoints.remove('c0');
  const [, second] = bed.machine.drives;
  assert.ok(second !== undefined);
  second.volume.snapshot = () => Promise.reject(new AenvError('no_space', 'as planned'));
  await assert.rejects(bed.checkpoints.capture(bed.request('c1')), { code: 'no_space' });
  assert.deepEqual([await bed.storage.store.listSnapshots(), await bed.lab.repository.list()], [[], []]);
});
