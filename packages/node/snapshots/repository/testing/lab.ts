import { mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { MemorySink } from '@aenv/vmm/contract/micro-vm.ts';
import type {
  CommitOptions,
  HostFacts,
  SnapshotDraft,
  SnapshotFacts,
  SnapshotManifest,
  SnapshotRepository,
} from '../../contract.ts';
import { openSnapshotRepository, type RepositoryOptions } from '../repository.ts';
import { readMemoryOf } from './flat-memory.ts';

export const MIB = 2 ** 20;
export const PAGE = 4096;
/** of the guests here, unless they are told otherwise: two whole chunks and half of one */
export const MEMORY_MB = 10;

export const HOST: HostFacts = {
  kind: 'fake',
  build: { version: '1', accelerator: 'none', machine: 'fake' },
  cpu: { model: 'none', flags: [] },
};

/** A change of guest memory: pages of one byte value, or zeros. Offset and length in pages. */
export interface Change {
  readonly page: number;
  readonly count: number;
  readonly value: number;
}

export const BASE_CHANGES: readonly Change[] = [
  { page: 1, count: 3, value: 1 },
  { page: 1100, count: 2, value: 2 },
];
export const DELTA_CHANGES: readonly Change[] = [{ page: 600, count: 5, value: 3 }];

/** A repository in a folder of its own, and a guest whose memory is what a test says. */
export class Lab implements AsyncDisposable {
  readonly folder: string;
  readonly root: string;
  /** what a cold boot maps */
  readonly zeros: string;
  readonly repository: SnapshotRepository;
  readonly memoryMb: number;

  private constructor(folder: string, repository: SnapshotRepository, memoryMb: number) {
    this.folder = folder;
    this.root = join(folder, 'snapshots');
    this.zeros = join(folder, 'zeros.mem');
    this.repository = repository;
    this.memoryMb = memoryMb;
  }

  static async open(options: Partial<RepositoryOptions> = {}, memoryMb = MEMORY_MB): Promise<Lab> {
    const folder = await mkdtemp(join(tmpdir(), 'repository-'));
    const zeros = join(folder, 'zeros.mem');
    await writeFile(zeros, '');
    await truncate(zeros, memoryMb * MIB);
    for (const name of ['kernel', 'tools']) await writeFile(join(folder, name), name);
    return Lab.reopen(folder, options);
  }

  /** Another process that has the same folder. */
  static async reopen(folder: string, options: Partial<RepositoryOptions> = {}): Promise<Lab> {
    const repository = await openSnapshotRepository({
      root: join(folder, 'snapshots'),
      clock: { now: () => Date.now(), sleep: async () => {} },
      log: silentLogger,
      verifyDisk: async () => ({ checkedBytes: 0, problems: [] }),
      ...options,
    });
    const { size } = await stat(join(folder, 'zeros.mem'));
    return new Lab(folder, repository, size / MIB);
  }

  facts(change: Partial<SnapshotFacts> = {}): SnapshotFacts {
    return {
      kind: 'snapshot',
      source: { sandboxId: 'i0123456789' },
      names: ['default/näme:v1'],
      disk: { state: { layers: ['a', 'b'], virtualSize: 1 }, paths: ['/layers/a'] },
      vmm: { kind: HOST.kind, build: HOST.build },
      machine: { cpuCount: 1, drives: ['root', 'tools'] },
      cpu: HOST.cpu,
      kernel: { digest: 'k', path: join(this.folder, 'kernel') },
      toolsDrive: { digest: 't', path: join(this.folder, 'tools') },
      envd: { hostSecret: 'secret', version: '0.6.13', bootId: 'boot' },
      ...change,
    };
  }

  /** What a VMM does with a draft. */
  async capture(draft: SnapshotDraft, changes: readonly Change[]): Promise<void> {
    await writeFile(draft.deviceState, 'state of devices', { mode: 0o600 });
    await giveChanges(changes, draft.memory);
  }

  /** A snapshot of a VM with these changes to its base. */
  async snapshot(
    id: string,
    changes: readonly Change[],
    options: CommitOptions & { readonly memoryBase?: string; readonly facts?: Partial<SnapshotFacts> } = {},
  ): Promise<SnapshotManifest> {
    const memoryBase = options.memoryBase ?? this.zeros;
    await using draft = await this.repository.begin({ id, memoryBase, memoryMb: this.memoryMb });
    await this.capture(draft, changes);
    return await draft.commit(this.facts(options.facts), options);
  }

  /** Memory that a VM has which is started from a snapshot. */
  async memoryOf(id: string): Promise<Buffer> {
    const opened = await this.repository.open(id, HOST);
    try {
      return await readMemoryOf(opened.image);
    } finally {
      await opened.close();
    }
  }

  /** Where the memory of a VM is mapped from that is started from a snapshot. */
  async baseFileOf(id: string): Promise<string> {
    const opened = await this.repository.open(id, HOST);
    await opened.close();
    return opened.image.memoryBase;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.repository.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

export async function giveChanges(changes: readonly Change[], sink: MemorySink): Promise<void> {
  for (const { page, count, value } of changes) {
    if (value === 0) await sink.zero(page * PAGE, count * PAGE);
    else await sink.data(page * PAGE, Buffer.alloc(count * PAGE, value));
  }
}
