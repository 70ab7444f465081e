import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Random } from '../../testing/fuzz.ts';
import type { LayerFiles, RandomFile } from '../files/contract.ts';

const SECTOR = 512;

/** What a write left in one sector, as it goes to the disk. */
interface Write {
  readonly sector: number;
  readonly bytes: Buffer;
}

/** A file: what programs see, what is surely on the disk, and what may or may not be there. */
class Content {
  seen = Buffer.alloc(0);
  stable = Buffer.alloc(0);
  /** in the order of the writes; those of one sector may be lost from any one of them on */
  unsynced: Write[] = [];
}

/** One change of the names, in the order in which a journal has them. */
type NameChange = (names: Map<string, Content>) => void;

/**
 * Files in memory that lose power as a journaling file system may: of what was not synced, any sectors of any writes are
 * kept, sizes grow or not, names change up to any point of time. Files below `memory` are gone.
 */
export class PowerCutFiles implements LayerFiles {
  readonly #memory: string;
  readonly #seen: Map<string, Content>;
  readonly #stable: Map<string, Content>;
  #changes: NameChange[] = [];
  #off = false;
  /** Calls until the power goes, or the process is killed. */
  fuse = Number.POSITIVE_INFINITY;
  /** Syncs that were asked for. */
  syncs = 0;

  constructor(memory: string, names = new Map<string, Content>()) {
    this.#memory = memory;
    this.#seen = new Map(names);
    this.#stable = new Map(names);
  }

  /** @returns what is there when power is back; these files only fail from now on */
  cut(random: Random): PowerCutFiles {
    this.#off = true;
    const names = new Map(this.#stable);
    for (const change of this.#changes.slice(0, Math.floor(random() * (this.#changes.length + 1)))) change(names);
    for (const path of names.keys()) if (path.startsWith(this.#memory)) names.delete(path);
    const survived = new Map([...names].map(([path, content]) => [path, afterCut(content, random)]));
    return new PowerCutFiles(this.#memory, survived);
  }

  /** @returns what is there when the process was killed and started again: everything that was written */
  kill(): PowerCutFiles {
    this.#off = true;
    const files = new PowerCutFiles(this.#memory, this.#stable);
    for (const [path, content] of this.#seen) files.#seen.set(path, content);
    for (const path of this.#stable.keys()) if (!this.#seen.has(path)) files.#seen.delete(path);
    files.#changes = this.#changes;
    return files;
  }

  /** A file that is there already. */
  put(path: string, bytes: Uint8Array): void {
    const content = new Content();
    content.seen = Buffer.from(bytes);
    content.stable = Buffer.from(bytes);
    this.#seen.set(path, content);
    this.#stable.set(path, content);
  }

  bytesOf(path: string): Buffer {
    const content = this.#seen.get(path);
    if (content === undefined) throw new AenvError('layer_corrupt', `${path} does not exist`);
    return content.seen;
  }

  async makeFolder(): Promise<void> {
    await this.#tick();
  }

  async create(path: string): Promise<RandomFile> {
    await this.#tick();
    if (this.#seen.has(path)) throw new AenvError('io_failed', `${path} exists`);
    const content = new Content();
    this.#change((names) => names.set(path, content));
    return this.#file(content);
  }

  async open(path: string): Promise<RandomFile | undefined> {
    await this.#tick();
    const content = this.#seen.get(path);
    return content === undefined ? undefined : this.#file(content);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#tick();
    this.renameSync(from, to);
  }

  renameSync(from: string, to: string): void {
    this.#change((names) => {
      const content = names.get(from);
      names.delete(from);
      if (content !== undefined) names.set(to, content);
    });
  }

  async remove(path: string): Promise<void> {
    await this.#tick();
    this.#change((names) => names.delete(path));
  }

  async syncFolder(path: string): Promise<void> {
    this.syncs++;
    const changes = this.#changes;
    await this.#tick();
    // One journal: what was changed before is durable in all folders.
    if (dirname(path) === '') return;
    for (const change of changes) change(this.#stable);
    this.#changes = this.#changes.slice(changes.length);
  }

  #change(change: NameChange): void {
    this.#check();
    change(this.#seen);
    this.#changes = [...this.#changes, change];
  }

  #file(content: Content): RandomFile {
    const write = (data: Uint8Array, position: number) => {
      this.#check();
      const end = position + data.length;
      if (end > content.seen.length) content.seen = Buffer.concat([content.seen], end);
      content.seen.set(data, position);
      for (let at = position - (position % SECTOR); at < end; at += SECTOR) {
        content.unsynced.push({ sector: at / SECTOR, bytes: Buffer.from(content.seen.subarray(at, at + SECTOR)) });
      }
    };
    return {
      size: () => content.seen.length,
      readSync: (target, position) => {
        if (position + target.length > content.seen.length) throw new AenvError('layer_corrupt', 'read beyond the end');
        target.set(content.seen.subarray(position, position + target.length));
      },
      writeSync: (parts, position) => {
        for (const part of parts) {
          write(part, position);
          position += part.length;
        }
      },
      write: async (data, position) => {
        await this.#tick();
        write(data, position);
      },
      truncateSync: (size) => {
        this.#check();
        content.seen = Buffer.concat([content.seen], size);
        content.unsynced = content.unsynced.filter((item) => item.sector * SECTOR < size);
      },
      sync: async () => {
        this.syncs++;
        const synced = content.unsynced.length;
        const seen = content.seen;
        const bytes = Buffer.from(seen);
        await this.#tick();
        content.stable = bytes;
        content.unsynced = content.unsynced.slice(synced);
      },
      close: async () => {},
    };
  }

  /** Lets others go first, as a real call does. */
  async #tick(): Promise<void> {
    this.#check();
    await new Promise(setImmediate);
    this.#check();
  }

  #check(): void {
    if (--this.fuse < 0) this.#off = true;
    if (this.#off) throw new AenvError('io_failed', 'the power is off');
  }
}

function afterCut(content: Content, random: Random): Content {
  const survived = new Content();
  let bytes = Buffer.from(content.stable);
  const lost = new Set<number>();
  const keep = random();
  for (const { sector, bytes: written } of content.unsynced) {
    if (lost.has(sector)) continue;
    if (random() > keep) {
      lost.add(sector);
      continue;
    }
    const end = sector * SECTOR + written.length;
    if (end > bytes.length) bytes = Buffer.concat([bytes], end);
    bytes.set(written, sector * SECTOR);
  }
  survived.seen = bytes;
  survived.stable = Buffer.from(bytes);
  return survived;
}
