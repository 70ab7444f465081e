import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { killAndWait } from '@aenv/platform/process/identity.ts';
import { blockdFolders } from '../../blockd/layout.ts';
import type { BlockdArguments } from '../../blockd/process/arguments.ts';
import { findBlockd } from '../../blockd/process/state.ts';
import type { BlockStore } from '../../contract.ts';
import { LayerWriter } from '../../layers/commit/layer-writer.ts';
import { createNbdStore } from '../nbd-store.ts';
import { BlockdSupervisor, type SupervisorOptions } from '../supervisor.ts';

export interface HostOptions {
  readonly uid?: number;
  readonly daemon?: Partial<BlockdArguments>;
  readonly supervisor?: Pick<SupervisorOptions, 'hungMs' | 'patienceMs'>;
}

/** A node's part of storage with a block daemon of its own, all gone when it is disposed of. */
export class StorageHost implements AsyncDisposable {
  readonly root: string;
  readonly daemon: BlockdArguments;
  supervisor: BlockdSupervisor;
  readonly store: BlockStore;

  private constructor(root: string, daemon: BlockdArguments, supervisor: BlockdSupervisor) {
    this.root = root;
    this.daemon = daemon;
    this.supervisor = supervisor;
    this.store = createNbdStore({
      root: daemon.root,
      daemon: { call: (operation, args) => this.supervisor.call(operation, args) },
      socketsDir: join(root, 'run', 'nbd'),
      ...(daemon.uid === undefined ? {} : { daemonUid: daemon.uid }),
    });
  }

  static async open(options: HostOptions = {}): Promise<StorageHost> {
    const root = await mkdtemp(join(tmpdir(), 'aenv-blk-'));
    await chmod(root, 0o711);
    await mkdir(join(root, 'run'), { mode: 0o711 });
    const daemon: BlockdArguments = {
      root: join(root, 'disks'),
      runtime: join(root, 'run', 'blockd'),
      version: 'test',
      threads: 1,
      'max-layers': 32,
      'min-garbage-bytes': 2 ** 30,
      'look-ms': 10_000,
      ...(options.uid === undefined ? {} : { uid: options.uid }),
      ...options.daemon,
    };
    try {
      return new StorageHost(root, daemon, await openSupervisor(root, daemon, options.supervisor));
    } catch (error) {
      const log = await readFile(join(root, 'blockd.log'), 'utf8').catch(() => '');
      await rm(root, { recursive: true, force: true });
      throw new Error(`no block daemon:\n${log}`, { cause: error });
    }
  }

  get logFile(): string {
    return join(this.root, 'blockd.log');
  }

  /** What a node that was started again does. */
  async reopenSupervisor(version = 'test'): Promise<void> {
    this.supervisor = await openSupervisor(this.root, { ...this.daemon, version });
  }

  /** What a crash or the kernel's OOM killer does. */
  async killDaemon(): Promise<void> {
    const found = await findBlockd(blockdFolders(this.daemon.root, this.daemon.runtime).state);
    if (found === undefined) throw new Error('no block daemon runs');
    await killAndWait(found.process);
  }

  /** A sealed layer with random data at its beginning. */
  async layer(sizeBytes: number, dataBytes: number): Promise<{ readonly path: string; readonly data: Buffer }> {
    const path = join(this.root, `${randomBytes(4).toString('hex')}.layer`);
    const writer = await LayerWriter.create({ path, uuid: crypto.randomUUID(), virtualSize: sizeBytes });
    const data = randomBytes(dataBytes);
    await writer.append(data, 0);
    await writer.finish();
    await chmod(path, 0o644);
    return { path, data };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.supervisor.close();
    const left = await findBlockd(blockdFolders(this.daemon.root, this.daemon.runtime).state);
    if (left !== undefined) await killAndWait(left.process);
    await rm(this.root, { recursive: true, force: true });
  }
}

function openSupervisor(
  root: string,
  daemon: BlockdArguments,
  times: HostOptions['supervisor'] = {},
): Promise<BlockdSupervisor> {
  return BlockdSupervisor.open({
    daemon,
    logFile: join(root, 'blockd.log'),
    log: silentLogger,
    metrics: silentMetrics,
    ...times,
  });
}
