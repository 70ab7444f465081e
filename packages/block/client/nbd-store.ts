import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DriveSource } from '@aenv/contracts/vm/drive.ts';
import { allEnded } from '@aenv/platform/rollback/all-ended.ts';
import { blockdFolders, layerFolder } from '../blockd/layout.ts';
import type { DiskLayer } from '../blockd/records/schema.ts';
import type { BlockDevice, BlockStore, DiskSnapshot, NewDisk, RemoteLayer } from '../contract.ts';
import { sealedFile } from '../layers/writable/sealed-file.ts';
import type { BlockdSupervisor } from './supervisor.ts';

/** The supervisor, or whatever else answers the operations of a block daemon. */
export type Daemon = Pick<BlockdSupervisor, 'call'>;

export interface NbdStoreOptions {
  readonly daemon: Daemon;
  /** the block daemon's folder on the disk */
  readonly root: string;
  /** folder of the sockets, in memory; users of VMs can pass through its parents */
  readonly socketsDir: string;
  /** user of the block daemon; undefined when it is that of this process */
  readonly daemonUid?: number;
}

/** Disks that the block daemon serves, each on a socket in a folder that only its VM may enter. */
export function createNbdStore(options: NbdStoreOptions): BlockStore {
  const { daemon, socketsDir } = options;
  const folderOf = (id: string) => join(socketsDir, id);

  async function ownPath(layer: string): Promise<string> {
    const folder = layerFolder(blockdFolders(options.root, ''), layer);
    const found = await sealedFile(folder);
    if (found === undefined) throw new AenvError('layer_corrupt', `the layer ${folder} was not sealed`);
    return found.path;
  }

  async function remove(id: string): Promise<void> {
    await daemon.call('remove', { disk: id });
    await rm(folderOf(id), { recursive: true, force: true });
  }

  async function create(id: string, { origin, sizeBytes, durability = 'relaxed' }: NewDisk): Promise<BlockDevice> {
    const from = origin.kind === 'snapshot' ? origin : { kind: 'layers' as const, layers: origin.layers.map(layerOf) };
    await daemon.call('create', { disk: id, origin: from, sizeBytes, durability });
    return deviceOf(id, sizeBytes);
  }

  function deviceOf(id: string, sizeBytes: number): BlockDevice {
    return new NbdDisk(
      id,
      sizeBytes,
      daemon,
      (uid) => makeFolder(id, uid),
      () => remove(id),
    );
  }

  /**
   * The daemon owns the folder and makes the socket in it, which inherits the folder's group: that of the VM. So the VM
   * reaches this socket and no other, and a daemon without any rights can make it again after a restart.
   */
  async function makeFolder(id: string, uid: number): Promise<string> {
    await mkdir(socketsDir, { recursive: true, mode: 0o711 });
    await chmod(socketsDir, 0o711);
    const folder = folderOf(id);
    await mkdir(folder, { mode: 0o700, recursive: true });
    await chown(folder, options.daemonUid ?? process.getuid?.() ?? 0, uid);
    await chmod(folder, 0o2710);
    return folder;
  }

  return {
    create,
    open: async (id) => deviceOf(id, (await daemon.call('stat', { disk: id })).sizeBytes),
    remove,
    list: async () => (await daemon.call('list', {})).disks,
    layersOf: async (snapshot) => {
      const { layers } = await daemon.call('settleSnapshot', { snapshot });
      const places = layers.map((layer) => {
        if (layer.kind === 'own') return ownPath(layer.layer);
        return layer.kind === 'file' ? layer.path : { key: layer.key, source: layer.source };
      });
      return await Promise.all(places);
    },
    ownLayersOf: async (snapshot) => {
      const { layers } = await daemon.call('settleSnapshot', { snapshot });
      return await Promise.all(layers.flatMap((layer) => (layer.kind === 'own' ? [ownPath(layer.layer)] : [])));
    },
    listSnapshots: async () => (await daemon.call('listSnapshots', {})).snapshots,
    removeSnapshot: async (snapshot) => {
      await daemon.call('removeSnapshot', { snapshot });
    },
  };
}

function layerOf(layer: string | RemoteLayer): DiskLayer {
  return typeof layer === 'string'
    ? { kind: 'file', path: layer }
    : { kind: 'remote', key: layer.key, source: { ...layer.source } };
}

class NbdDisk implements BlockDevice {
  readonly id: string;
  readonly sizeBytes: number;
  readonly #daemon: Daemon;
  readonly #makeFolder: (uid: number) => Promise<string>;
  readonly #remove: () => Promise<void>;

  constructor(
    id: string,
    sizeBytes: number,
    daemon: Daemon,
    makeFolder: (uid: number) => Promise<string>,
    remove: () => Promise<void>,
  ) {
    this.id = id;
    this.sizeBytes = sizeBytes;
    this.#daemon = daemon;
    this.#makeFolder = makeFolder;
    this.#remove = remove;
  }

  async attach(uid: number): Promise<DriveSource> {
    const socket = join(await this.#makeFolder(uid), 'nbd.sock');
    const answer = await this.#daemon.call('attach', { disk: this.id, socket });
    return { kind: 'nbd', socket, export: answer.export, readOnly: false };
  }

  async prepareSnapshot(): Promise<void> {
    await allEnded([this.#daemon.call('prepareSnapshot', { disk: this.id }), this.#settle()]);
  }

  /** What was written during the first flush is little, mostly, and so the second one is short. */
  async #settle(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      await this.#daemon.call('flush', { disk: this.id, durability: 'strict' });
    }
  }

  async snapshot(snapshot: string): Promise<DiskSnapshot> {
    const { swapMs } = await this.#daemon.call('snapshot', { disk: this.id, snapshot });
    const durable = this.#daemon.call('settleSnapshot', { snapshot }).then(() => {});
    // Whoever waits for it is told.
    durable.catch(() => {});
    return { snapshot, swapMs, durable };
  }

  async allocatedBytes(): Promise<number> {
    return (await this.#daemon.call('stat', { disk: this.id })).allocatedBytes;
  }

  async remove(): Promise<void> {
    await this.#remove();
  }
}
