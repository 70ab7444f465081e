import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Logs of VMs that failed; more would only fill the disk. */
const KEPT = 20;

/** The console logs of VMs. That of a VM which ended as it should goes with it, those of the last failures stay. */
export class SerialLogs {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  pathOf(incarnation: string): string {
    return join(this.#folder, `${incarnation}.log`);
  }

  async discard(incarnation: string): Promise<void> {
    await rm(this.pathOf(incarnation), { force: true });
  }

  /**
   * Keeps the newest ones of those whose VM is gone.
   * @param inUse incarnations that run or start
   */
  async prune(inUse: ReadonlySet<string>): Promise<void> {
    const over: { path: string; at: number }[] = [];
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const path = join(this.#folder, name);
      const at = await stat(path).then(
        (info) => info.mtimeMs,
        () => undefined,
      );
      if (at !== undefined && !inUse.has(name.replace(/\.log$/, ''))) over.push({ path, at });
    }
    over.sort((a, b) => b.at - a.at);
    for (const { path } of over.slice(KEPT)) await rm(path, { force: true });
  }
}
