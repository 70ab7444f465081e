import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { identify, isAlive, killAndWait, type ProcessIdentity } from '@aenv/platform/process/identity.ts';

const LOOK_MS = 5_000;
const ROUNDS = 20;
export const MARK = 'AENV_TEST_PROCESS';

/**
 * The processes that a test file starts, directly or not: those that have its mark in their environment, and what they
 * start. VMs and daemons get an environment and a session of their own and may outlive who started them, so it is looked
 * now and then who is there.
 */
export class TestProcesses implements Disposable {
  readonly mark: string;
  readonly #seen = new Map<number, ProcessIdentity>();
  readonly #timer: NodeJS.Timeout;

  constructor(mark: string) {
    this.mark = mark;
    this.#timer = setInterval(() => void this.#look().catch(() => {}), LOOK_MS);
  }

  /** Those that still run `patienceMs` after they could have ended. */
  async left(patienceMs: number): Promise<ProcessIdentity[]> {
    const deadline = Date.now() + patienceMs;
    for (;;) {
      const alive = await this.#look();
      if (alive.length === 0 || Date.now() > deadline) return alive;
      await delay(50);
    }
  }

  /** Kills all of them, also what is started meanwhile. @returns their names */
  async end(): Promise<string[]> {
    const names: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const alive = await this.#look();
      if (alive.length === 0) break;
      for (const one of alive) {
        names.push((await readFile(`/proc/${one.pid}/comm`, 'utf8').catch(() => '')).trim());
        await killAndWait(one);
      }
    }
    return names.filter((name) => name !== '');
  }

  async #look(): Promise<ProcessIdentity[]> {
    const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 1 && pid !== process.pid);
    const parents = new Map<number, number>();
    const found: number[] = [];
    for (const pid of pids) {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      parents.set(pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      if (this.#seen.has(pid) || environment.split('\0').includes(`${MARK}=${this.mark}`)) found.push(pid);
    }
    // The list grows while it is gone through.
    for (const parent of found) {
      for (const pid of pids) if (parents.get(pid) === parent && !found.includes(pid)) found.push(pid);
    }
    for (const pid of found) {
      const before = this.#seen.get(pid);
      if (before !== undefined && !(await isAlive(before))) this.#seen.delete(pid);
      else if (before === undefined) {
        const identity = await identify(pid);
        if (identity !== undefined) this.#seen.set(pid, identity);
      }
    }
    for (const [pid, identity] of this.#seen) if (!(await isAlive(identity))) this.#seen.delete(pid);
    return [...this.#seen.values()];
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
