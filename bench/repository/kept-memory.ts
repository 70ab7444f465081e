import { open, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommitOptions } from '../../packages/node/snapshots/contract.ts';
import { HOST, Lab, MIB, PAGE } from '../../packages/node/snapshots/repository/testing/lab.ts';

const MEMORY_MB = 512;
/** bytes that lie together in memory; runs are spread over all of it, which is the worst case */
const RUN = 16 * PAGE;

export interface Kept {
  /** `ms` in which the pages were taken, while the VM would stand still */
  readonly streamMs: number;
  /** `ms` from the first page until the snapshot was durable */
  readonly totalMs: number;
  /** `ms` to make it ready for a VMM */
  readonly openMs: number;
}

/** A repository that keeps memory with real content, without VMs. */
export class MemoryKeeper implements AsyncDisposable {
  readonly #lab: Lab;
  readonly #zeros: string;
  readonly #content: Buffer;

  private constructor(lab: Lab, content: Buffer) {
    this.#lab = lab;
    this.#zeros = join(lab.folder, 'zeros-512.mem');
    this.#content = content;
  }

  static async open(): Promise<MemoryKeeper> {
    const keeper = new MemoryKeeper(await Lab.open(), await readFile(process.execPath));
    await writeFile(keeper.#zeros, '');
    await truncate(keeper.#zeros, MEMORY_MB * MIB);
    return keeper;
  }

  /**
   * Keeps a machine, and forgets it.
   * @param mib MiB of its memory that differ from the base
   * @param variant of the content: chunks of the same content would be there already
   */
  async keep(mib: number, memoryBase = this.#zeros, options: CommitOptions = {}, variant = 0): Promise<Kept> {
    const { repository } = this.#lab;
    const begin = performance.now();
    let streamMs: number;
    {
      await using draft = await repository.begin({ id: 'kept', memoryBase, memoryMb: MEMORY_MB });
      await writeFile(draft.deviceState, this.#content.subarray(0, 100_000));
      const begun = performance.now();
      const step = Math.floor((MEMORY_MB * RUN) / mib / PAGE) * PAGE;
      for (let i = 0; i < (mib * MIB) / RUN; i++) await draft.memory.data(i * step, this.#run(i, variant));
      streamMs = performance.now() - begun;
      await draft.commit(this.#lab.facts(), options);
    }
    const totalMs = performance.now() - begin;
    const opened = await repository.open('kept', HOST);
    const openMs = performance.now() - begin - totalMs;
    await opened.close();
    await repository.remove('kept');
    return { streamMs, totalMs, openMs };
  }

  /** A template whose base stays. @returns path of its base */
  async base(mib: number): Promise<string> {
    const { repository } = this.#lab;
    await using draft = await repository.begin({ id: 'base', memoryBase: this.#zeros, memoryMb: MEMORY_MB });
    await writeFile(draft.deviceState, '');
    for (let i = 0; i < (mib * MIB) / RUN; i++) await draft.memory.data(i * RUN, this.#run(i, 0));
    await draft.commit(this.#lab.facts(), { asNewBase: true });
    return this.#lab.baseFileOf('base');
  }

  /** The same bytes into one file. @returns `ms` until they are on the disk */
  async plain(mib: number): Promise<number> {
    const begin = performance.now();
    await using file = await open(join(this.#lab.folder, 'plain'), 'w');
    for (let i = 0; i < mib; i++) await file.write(this.#content, (i * MIB) % (64 * MIB), MIB);
    await file.sync();
    return performance.now() - begin;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lab[Symbol.asyncDispose]();
  }

  #run(i: number, variant: number): Buffer {
    const at = ((i * RUN) % (64 * MIB)) + variant;
    return this.#content.subarray(at, at + RUN);
  }
}
