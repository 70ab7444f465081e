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
  freeBytes = 2 ** 40;

  private constructor(lab: Lab, storage: StorageHost, machine: Machine) {
    this.lab = lab;
    this.storage = storage;
    this.machine = machine;
    this.checkpoints = new NodeCheckpoints({
      ...{ repository: lab.repository, volumes: storage.store, host: HOST, sealOf: async () => undefined },
      guests: { prepare: async () => {}, freeze: async () => {}, unfreeze: async () => {}, sync: async () => {} },
      log: silentLogger,
      space: new DiskSpace({ folder: lab.folder, keepFreeBytes: 0, readFree: async () => this.freeBytes }),
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
      record: { kind: HOST.kind, memoryBase: lab.zeros },
      exited: new Promise(() => {}),
      pause: async () => {},
      resume: async () => {},
      ...{ privateBytes: async () => 4096, changedBytes: async () => 4096 },
      capture: async (draft: Parameters<MicroVm['capture']>[0]) => {
        await lab.capture(draft as Parameters<Lab['capture']>[0], [{ page: 1, count: 1, value: 7 }]);
      },
    } as unknown as MicroVm;
    const artefact = (name: string) => ({ digest: name, path: join(lab.folder, name) });
    const boot = { kernel: artefact('kernel'), toolsDrive: artefact('tools') };
    return new Bed(lab, storage, { vm, volume, drives: attached, address: '127.0.0.1', boot });
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

test('a machine of another version of the VMM says so in its manifest; only its disk is kept where it could not go on', async () => {
  await using bed = await Bed.open(0);
  const { machine, lab } = bed;
  const under = (version: string): Machine => {
    const vm = { ...machine.vm, record: { ...machine.vm.record, build: { ...HOST.build, version } } };
    return { ...machine, vm: vm as MicroVm, boot: { ...machine.boot, kernel: { digest: 'old', path: '/old' } } };
  };
  const paused: string[] = [];
  machine.vm.pause = async () => void paused.push('paused');
  await assert.rejects(bed.checkpoints.capture(bed.request('c1', under('0'))), (error) => {
    assert.ok(error instanceof AenvError && error.code === 'snapshot_incompatible' && error.status === 409);
    assert.match(error.message, /version of fake was 0, here it is/);
    assert.match(error.remediation, /without its memory/);
    return true;
  });
  assert.deepEqual([paused, await bed.storage.store.listSnapshots()], [[], []]);
  await bed.checkpoints.capture({ ...bed.request('c2', under('0')), memory: false });
  await bed.checkpoints.capture(bed.request('c3', under(HOST.build.version)));
  const { kernel, vmm } = await lab.repository.get('c3');
  assert.deepEqual([kernel.digest, vmm.build], ['old', HOST.build]);
});

test('what there is no room for is refused before the machine stands still, with its memory and without', async () => {
  await using bed = await Bed.open(0);
  const stopped: string[] = [];
  bed.machine.vm.pause = async () => void stopped.push('paused');
  bed.freeBytes = 2 ** 20;
  for (const memory of [true, false]) {
    await assert.rejects(bed.checkpoints.capture({ ...bed.request('c1'), memory }), {
      code: 'no_space',
      message: /a pause( without memory)? may take 17 MiB of .*, which has 1 MiB free/,
      remediation: /storage\.keep_free_bytes/,
    });
  }
  assert.deepEqual([stopped, await bed.storage.store.listSnapshots()], [[], []]);
});

test('a machine without drives has none in its manifest; a drive that cannot be captured fails the whole', async () => {
  await using bed = await Bed.open(2);
  await bed.checkpoints.capture(bed.request('c0', { ...bed.machine, drives: [] }));
  const { state } = (await bed.lab.repository.get('c0')).disk;
  assert.deepEqual([state.version, state.snapshot, state.drives], [3, 'c0', []]);
  await bed.checkpoints.remove('c0');
  const [, second] = bed.machine.drives;
  assert.ok(second !== undefined);
  second.volume.snapshot = () => Promise.reject(new AenvError('no_space', 'as planned'));
  await assert.rejects(bed.checkpoints.capture(bed.request('c1')), { code: 'no_space' });
  assert.deepEqual([await bed.storage.store.listSnapshots(), await bed.lab.repository.list()], [[], []]);
});

test('what was written is on its way to the disk before the guest stands still; the end of the block daemon meanwhile costs nothing', async () => {
  await using bed = await Bed.open(1);
  const { storage, machine, checkpoints } = bed;
  for (const disk of bed.disks) await bed.write(disk, 5);
  const calls = storage.supervisor.call.bind(storage.supervisor);
  const flushed: string[] = [];
  let still = false;
  machine.vm.pause = async () => {
    still = true;
  };
  storage.supervisor.call = async (operation, args) => {
    const answer = calls(operation, args);
    if (operation === 'flush') {
      assert.equal(still, false);
      const isFirst = flushed.push((args as { readonly disk: string }).disk) === 1;
      // While it is asked, and gone before the next step, which is not one to be repeated.
      if (isFirst) await Promise.all([storage.killDaemon(), answer]);
    }
    return await answer;
  };
  await checkpoints.capture(bed.request('c1'));
  assert.deepEqual([...new Set(flushed)].sort(), ['root', 'root-1']);
  assert.equal(still, true);
  const opened = await checkpoints.open('c1');
  assert.equal(await bed.firstByteOf(opened.disk, 'again'), 5);
  await opened.close();
});

test('disks that take long to be written are not waited for when the VM dies, and a full one fails before it stands still', async () => {
  await using bed = await Bed.open(0);
  const { machine, checkpoints, storage, lab } = bed;
  const died = Promise.withResolvers<never>();
  const stopped: string[] = [];
  const vm = { ...machine.vm, exited: died.promise, pause: async () => void stopped.push('paused') } as MicroVm;
  const asked = Promise.withResolvers<void>();
  const never = Promise.withResolvers<void>();
  const prepareSnapshot = () => {
    asked.resolve();
    return never.promise;
  };
  const on = (prepare: () => Promise<void>): Machine => {
    const volume = Object.assign(Object.create(machine.volume) as BlockDevice, { prepareSnapshot: prepare });
    return { ...machine, vm, volume };
  };
  for (const memory of [true, false]) {
    const full = () => Promise.reject(new AenvError('no_space', 'as planned'));
    await assert.rejects(checkpoints.capture({ ...bed.request('c1', on(full)), memory }), { code: 'no_space' });
  }
  const captured = checkpoints.capture(bed.request('c1', on(prepareSnapshot)));
  await asked.promise;
  died.reject(new Error('as planned'));
  await assert.rejects(captured, { code: 'vm_died' });
  assert.deepEqual([stopped, await storage.store.listSnapshots(), await lab.repository.list()], [[], [], []]);
  never.resolve();
});
