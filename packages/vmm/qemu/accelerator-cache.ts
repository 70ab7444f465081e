import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { AcceleratorChoice } from './machine.ts';
import { isRecord } from './qmp/message.ts';

const FILE = 'accelerator.json';

/** The answer of the last test boot, good for one boot of the host, one QEMU and one kernel. */
export class AcceleratorCache {
  readonly #path: string;
  readonly #key: string;

  private constructor(path: string, key: string) {
    this.#path = path;
    this.#key = key;
  }

  static async open(assetsDir: string, qemuVersion: string, kernelDigest: string): Promise<AcceleratorCache> {
    const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
    return new AcceleratorCache(join(assetsDir, FILE), [bootId, qemuVersion, kernelDigest].join(' '));
  }

  /** The answer, if there is one for just this. A damaged file counts as none. */
  async read(): Promise<AcceleratorChoice | undefined> {
    let saved: unknown;
    try {
      saved = JSON.parse(await readFile(this.#path, 'utf8'));
    } catch {
      return undefined;
    }
    if (!isRecord(saved) || saved.key !== this.#key || typeof saved.reason !== 'string') return undefined;
    const { accelerator, reason } = saved;
    return accelerator === 'kvm' || accelerator === 'tcg' ? { accelerator, reason } : undefined;
  }

  async write(choice: AcceleratorChoice): Promise<void> {
    await mkdir(join(this.#path, '..'), { recursive: true });
    await writeDurable(this.#path, `${JSON.stringify({ key: this.#key, ...choice })}\n`);
  }
}
