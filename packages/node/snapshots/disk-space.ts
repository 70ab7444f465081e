import { statfs } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

export interface DiskSpaceOptions {
  /** a folder of the file system in question */
  readonly folder: string;
  /** what nobody here takes, in bytes */
  readonly keepFreeBytes: number;
  /** default: what the kernel says that users may take */
  readonly readFree?: (folder: string) => Promise<number>;
}

/** Room on a disk that is promised before it is written to, so that several who look at the same time do not all get it. */
export class DiskSpace {
  readonly #options: DiskSpaceOptions;
  #promised = 0;

  constructor(options: DiskSpaceOptions) {
    this.#options = options;
  }

  /**
   * Promises `bytes` until the result is disposed.
   * @param what is to be written, for the message
   * @throws AenvError `no_space`
   */
  async reserve(bytes: number, what: string): Promise<Disposable> {
    const { folder, keepFreeBytes, readFree = readFreeBytes } = this.#options;
    const free = await readFree(folder);
    // Others may have written what is promised already.
    const freeBytes = Math.max(0, free - this.#promised);
    if (bytes > freeBytes - keepFreeBytes) {
      const [needed, there, kept] = [bytes, freeBytes, keepFreeBytes].map(mebibytes);
      throw new AenvError(
        'no_space',
        `${what} may take ${needed} MiB of ${folder}, which has ${there} MiB free, ${kept} MiB of which are kept free`,
        {
          remediation:
            'Free space of that file system, delete paused sandboxes or snapshots, or lower `storage.keep_free_bytes`.',
          details: { neededBytes: bytes, freeBytes, keepFreeBytes },
        },
      );
    }
    this.#promised += bytes;
    let held = bytes;
    return {
      [Symbol.dispose]: () => {
        this.#promised -= held;
        held = 0;
      },
    };
  }
}

async function readFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

const mebibytes = (bytes: number): number => Math.ceil(bytes / 2 ** 20);
