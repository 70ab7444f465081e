import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LifecyclePoint } from '@aenv/node/sandboxes/faults.ts';
import type { TestDaemonOptions } from './daemon.ts';
import { until } from './until.ts';

const REACHED_MS = 90_000;

/** Points of the lifecycle at which a daemon that is started with `options` stops, until it is told to go on. */
export class FaultPoints implements AsyncDisposable {
  readonly options: Required<Pick<TestDaemonOptions, 'env' | 'program'>>;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.options = { env: { AENV_TEST_FAULTS: folder }, program: 'tests/harness/faulty-daemon.ts' };
  }

  static async open(): Promise<FaultPoints> {
    const points = new FaultPoints(await mkdtemp(join(tmpdir(), 'aenv-faults-')));
    await points.disarm();
    return points;
  }

  async arm(point: LifecyclePoint): Promise<void> {
    await writeFile(join(this.#folder, 'armed', point), '');
  }

  /** Waits until somebody stands at the point. */
  async reached(point: LifecyclePoint): Promise<void> {
    const isThere = async () => (await stat(join(this.#folder, 'reached', point))).isFile();
    await until(isThere, { timeoutMs: REACHED_MS, what: `${point} is reached` });
  }

  /** Lets all go on, and nobody stops any more. */
  async disarm(): Promise<void> {
    for (const name of ['armed', 'reached']) {
      await rm(join(this.#folder, name), { recursive: true, force: true });
      await mkdir(join(this.#folder, name));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
