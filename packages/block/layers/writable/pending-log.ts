import { readFileSync } from 'node:fs';
import { SEGMENT_SIZE } from '../../lsmt/format.ts';
import type { LayerFiles, RandomFile } from '../files/contract.ts';

const MAGIC = Buffer.from('aenvpnd1', 'latin1');
const HEADER = 128;
/** Entries that are on the disk are cut off once the file is larger than this, in bytes. */
const MAX_SIZE = 4 * 2 ** 20;

/**
 * Index entries of a writable layer that are not in its index file yet, in a file on a file system in memory: they survive
 * the end of the process, and are gone after a power cut, as the data that they point at may be. The header has the id of
 * the boot, in case the file was on a disk.
 *
 * Entries that are in the index file too do no harm: replaying a stretch of the log twice gives the same map.
 */
export class PendingLog {
  readonly #files: LayerFiles;
  readonly #path: string;
  readonly #header: Buffer;
  #file: RandomFile;
  #size = HEADER;

  private constructor(files: LayerFiles, path: string, header: Buffer, file: RandomFile) {
    this.#files = files;
    this.#path = path;
    this.#header = header;
    this.#file = file;
  }

  /** Replaces whatever is there. */
  static async create(files: LayerFiles, path: string, uuid: string, bootId: string): Promise<PendingLog> {
    await files.remove(path);
    const header = headerOf(uuid, bootId);
    const file = await files.create(path);
    file.writeSync([header], 0);
    return new PendingLog(files, path, header, file);
  }

  /**
   * Opens the log that this layer has left in this boot; makes a new one if there is none.
   * @returns the log and its entries
   */
  static async open(files: LayerFiles, path: string, uuid: string, bootId: string): Promise<[PendingLog, Buffer]> {
    const file = await files.open(path);
    const header = headerOf(uuid, bootId);
    const size = file?.size() ?? 0;
    if (file !== undefined && size >= HEADER) {
      const bytes = Buffer.alloc(size);
      file.readSync(bytes, 0);
      if (bytes.subarray(0, HEADER).equals(header)) {
        const log = new PendingLog(files, path, header, file);
        log.#size = size - ((size - HEADER) % SEGMENT_SIZE);
        return [log, bytes.subarray(HEADER, log.#size)];
      }
    }
    await file?.close();
    return [await PendingLog.create(files, path, uuid, bootId), Buffer.alloc(0)];
  }

  /** After a failure nothing of the entries is there, lest some of them be replayed behind later ones that are shorter. */
  append(entries: Uint8Array): void {
    try {
      this.#file.writeSync([entries], this.#size);
    } catch (error) {
      this.#file.truncateSync(this.#size);
      throw error;
    }
    this.#size += entries.length;
  }

  /** Puts bytes over those of an entry, `at` bytes after the first one. */
  overwrite(entry: Uint8Array, at: number): void {
    this.#file.writeSync([entry], HEADER + at);
  }

  /**
   * All but the given entries are on the disk. Cuts the file where that is cheap: when none is left, or when it has grown.
   * Where that fails, the file stays longer than it need be, and is cut the next time.
   */
  async keepOnly(left: () => Uint8Array): Promise<void> {
    try {
      if (left().length === 0) {
        this.#file.truncateSync(HEADER);
        this.#size = HEADER;
      } else if (this.#size >= MAX_SIZE) await this.#rewrite(left);
    } catch {
      // What is in the index file too does no harm.
    }
  }

  async #rewrite(left: () => Uint8Array): Promise<void> {
    const next = `${this.#path}.new`;
    await this.#files.remove(next);
    const file = await this.#files.create(next);
    try {
      // Nothing waits from here on, so that no entry goes to the old file only; the new one is whole when it gets the name.
      const entries = left();
      file.writeSync([this.#header, entries], 0);
      this.#files.renameSync(next, this.#path);
      const old = this.#file;
      this.#file = file;
      this.#size = HEADER + entries.length;
      await old.close();
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async remove(): Promise<void> {
    await this.#file.close();
    await this.#files.remove(this.#path);
  }
}

/** Id of this boot of the host, from proc(5). */
export function currentBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
}

function headerOf(uuid: string, bootId: string): Buffer {
  const header = Buffer.alloc(HEADER);
  MAGIC.copy(header);
  header.write(uuid, 8, 36, 'latin1');
  header.write(bootId, 48, 36, 'latin1');
  return header;
}
