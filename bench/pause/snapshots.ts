import type { TestDaemon } from '../../tests/harness/daemon.ts';
import { type BenchSandbox, logLine } from '../sandboxes/sandbox.ts';

export interface Taken {
  /** request to answer, which comes when all of it is on the disk, `ms` */
  readonly apiMs: number;
  /** for which the programs of the guest stood still, by the daemon's log, `ms` */
  readonly stillMs: number;
  readonly phases: Readonly<Record<string, number>>;
  /** of memory and devices */
  readonly bytes: number;
}

/** Takes snapshots of a sandbox, and removes each at once. */
export class Snapshots {
  readonly #daemon: TestDaemon;
  readonly #sandbox: BenchSandbox;
  #taken = 0;

  constructor(daemon: TestDaemon, sandbox: BenchSandbox) {
    this.#daemon = daemon;
    this.#sandbox = sandbox;
  }

  async take(): Promise<Taken> {
    const { id } = this.#sandbox;
    const begin = performance.now();
    const answer = await this.#daemon.api('POST', `/sandboxes/${id}/snapshots`);
    const text = await answer.text();
    const apiMs = performance.now() - begin;
    if (answer.status !== 201) throw new Error(`snapshot was answered with ${answer.status}: ${text}`);
    const { ms: phases, bytes = 0 } = await logLine(this.#daemon, 'snapshot taken', id, this.#taken++);
    const { snapshotID } = JSON.parse(text) as { readonly snapshotID: string };
    const removed = await this.#daemon.api('DELETE', `/templates/${snapshotID}`);
    if (removed.status !== 204) throw new Error(`the removal of a snapshot was answered with ${removed.status}`);
    const { still } = phases;
    if (still === undefined) throw new Error('the daemon does not tell how long a guest stood still');
    return { apiMs, stillMs: still, phases, bytes };
  }
}
