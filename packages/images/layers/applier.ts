import type { Stats } from 'node:fs';
import { chmod, lchown, link, lutimes, mkdir, open, symlink, utimes } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { isCode } from '../errors/is-code.ts';
import type { TarEntry } from '../tar/entry.ts';
import { quoted, readTar, type TarMember } from '../tar/reader.ts';
import { writeSparse } from './file-content.ts';
import { type Marker, markerOf, splitName } from './names.ts';
import { hasDeviceNumbers, makeNode } from './nodes.ts';
import { clearFolder, removeTree } from './remove-tree.ts';
import { join, RootDir } from './root-dir.ts';
import { isKept, type PendingXattrs, setXattrs } from './xattrs.ts';

export interface ApplierOptions {
  /** existing, empty folder that becomes the root file system; nobody else writes to it */
  readonly root: string;
  /** folder on the same file system for nodes under construction */
  readonly scratch: string;
  readonly limits?: LayerLimits;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/** What all layers of an image may hold together. */
export interface LayerLimits {
  readonly entries: number;
  readonly devices: number;
  /** bytes of file content */
  readonly bytes: number;
}

const DEFAULT_LIMITS: LayerLimits = { entries: 4_000_000, devices: 4096, bytes: 256 * 2 ** 30 };

/** Largest id; one more means "leave as it is" to chown(2). */
const MAX_ID = 2 ** 32 - 2;

/**
 * Applies layers in order to a folder, by the rules of the OCI image specification ("Applying Changesets"): later
 * entries replace earlier ones, whiteouts hide lower layers only, owners, modes, times and attributes are kept. Runs as
 * root. Names are hostile: see RootDir; a last component is never followed, what stands in the way is replaced.
 */
export class LayerApplier {
  readonly #options: ApplierOptions;
  readonly #limits: LayerLimits;
  readonly #root: RootDir;
  /** times of folders, set at the end, because every entry made inside changes them */
  readonly #folderTimes = new Map<string, number>();
  readonly #total = { entries: 0, devices: 0, bytes: 0 };
  #droppedXattrs = 0;
  /** paths of the current layer, with all folders above them */
  #own = new Set<string>();
  #xattrs: PendingXattrs = new Map();

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.#limits = options.limits ?? DEFAULT_LIMITS;
    this.#root = new RootDir(options.root);
  }

  /**
   * @param tar the uncompressed archive
   * @throws AenvError `image_invalid` that names the entry, `no_space`
   */
  async apply(tar: AsyncIterable<Uint8Array>): Promise<void> {
    this.#own = new Set();
    this.#xattrs = new Map();
    for await (const member of readTar(tar)) {
      this.#options.signal?.throwIfAborted();
      this.#count(member.entry);
      try {
        await this.#place(member);
      } catch (error) {
        throw asImageError(error, member.entry.name);
      }
    }
    await setXattrs(this.#options.root, this.#xattrs, this.#options.signal);
  }

  /** Sets what only holds once nothing more is written. Call it once, after the last layer. */
  async finish(): Promise<void> {
    for (const [path, mtimeMs] of this.#folderTimes) {
      const status = await this.#root.lstat(path);
      if (status?.isDirectory()) await utimes(this.#root.host(path), timeOf(mtimeMs), timeOf(mtimeMs));
    }
    if (this.#droppedXattrs > 0) {
      this.#options.log.debug('extended attributes of the build machine left out', { count: this.#droppedXattrs });
    }
  }

  async #place(member: TarMember): Promise<void> {
    const { entry } = member;
    const parts = splitName(entry.name);
    const marker = markerOf(parts);
    if (marker !== undefined) return this.#hide(parts.slice(0, -1), marker);
    const name = parts.at(-1);
    if (name === undefined) return this.#placeRoot(entry);

    const folder = (await this.#root.resolveFolder(parts.slice(0, -1), this.#maker)) ?? '';
    const path = join(folder, name);
    this.#claim(path);
    const status = await this.#root.lstat(path);
    if (entry.type === 'link') return this.#link(entry, path, status);
    if (status !== undefined && !(status.isDirectory() && entry.type === 'directory')) await this.#clear(path);
    await this.#make(member, path, status);
    await this.#decorate(entry, path);
  }

  async #placeRoot(entry: TarEntry): Promise<void> {
    if (entry.type !== 'directory') throw new AenvError('image_invalid', 'the root is not a folder');
    await this.#decorate(entry, '');
  }

  /** What the entry says, without owner, mode and times. */
  async #make(member: TarMember, path: string, status: Stats | undefined): Promise<void> {
    const { entry } = member;
    const target = this.#root.host(path);
    switch (entry.type) {
      case 'directory':
        if (!status?.isDirectory()) await mkdir(target, { mode: 0o700 });
        return;
      case 'symlink':
        if (entry.linkName === '') throw new AenvError('image_invalid', 'a symbolic link without a target');
        return symlink(Buffer.from(entry.linkName, 'latin1'), target);
      case 'file': {
        await using file = await open(target, 'wx', 0o600);
        this.#total.bytes += await writeSparse(file, member.content());
        return;
      }
      default:
        if (!hasDeviceNumbers(entry)) throw new AenvError('image_invalid', 'a device number is out of range');
        return makeNode(entry, target, this.#options.scratch);
    }
  }

  /** Owner first: chown(2) takes setuid bits and capabilities away. */
  async #decorate(entry: TarEntry, path: string): Promise<void> {
    if (entry.uid > MAX_ID || entry.gid > MAX_ID) throw new AenvError('image_invalid', 'an owner is out of range');
    const target = this.#root.host(path);
    await lchown(target, entry.uid, entry.gid);
    if (entry.type !== 'symlink') await chmod(target, entry.mode);
    if (entry.type === 'directory') this.#folderTimes.set(path, entry.mtimeMs);
    else await lutimes(target, timeOf(entry.mtimeMs), timeOf(entry.mtimeMs));
    this.#keepXattrs(entry, path);
  }

  #keepXattrs(entry: TarEntry, path: string): void {
    const carries = entry.type === 'file' || entry.type === 'directory';
    const kept = new Map([...entry.xattrs].filter(([name]) => carries && isKept(name)));
    this.#droppedXattrs += entry.xattrs.size - kept.size;
    if (kept.size > 0) this.#xattrs.set(path, kept);
    else this.#xattrs.delete(path);
  }

  async #link(entry: TarEntry, path: string, status: Stats | undefined): Promise<void> {
    const parts = splitName(entry.linkName);
    const folder = await this.#root.resolveFolder(parts.slice(0, -1));
    const source = folder === undefined ? undefined : join(folder, parts.at(-1) ?? '');
    const original = source === undefined ? undefined : await this.#root.lstat(source);
    if (source === undefined || original === undefined || original.isDirectory()) {
      throw new AenvError('image_invalid', `a hard link to ${quoted(entry.linkName)}, which is no file of the image`);
    }
    if (status !== undefined && status.ino === original.ino) return;
    if (status !== undefined) await this.#clear(path);
    await link(this.#root.host(source), this.#root.host(path));
  }

  async #hide(parts: readonly string[], marker: Marker): Promise<void> {
    if (marker.kind === 'ignored') return;
    const folder = await this.#root.resolveFolder(parts);
    if (folder === undefined) return;
    if (marker.kind === 'opaque') await clearFolder(this.#root, folder, this.#removed, this.#own);
    else await removeTree(this.#root, join(folder, marker.target), this.#removed, this.#own);
  }

  readonly #removed = (path: string): void => {
    this.#folderTimes.delete(path);
    this.#xattrs.delete(path);
    this.#own.delete(path);
  };

  async #clear(path: string): Promise<void> {
    await removeTree(this.#root, path, this.#removed);
    this.#claim(path);
  }

  readonly #maker = {
    clear: (path: string) => this.#clear(path),
    // A folder that no layer has an entry for gets a time that is the same in every import.
    made: (path: string) => {
      this.#folderTimes.set(path, 0);
    },
  };

  #claim(path: string): void {
    for (let at = path; at !== '' && !this.#own.has(at); at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
      this.#own.add(at);
    }
  }

  #count(entry: TarEntry): void {
    const total = this.#total;
    total.entries++;
    if (entry.type === 'character-device' || entry.type === 'block-device' || entry.type === 'fifo') total.devices++;
    const over =
      (total.entries > this.#limits.entries && `more than ${this.#limits.entries} entries`) ||
      (total.devices > this.#limits.devices && `more than ${this.#limits.devices} device nodes`) ||
      (total.bytes + entry.size > this.#limits.bytes && `more than ${this.#limits.bytes} bytes of files`);
    if (over) throw new AenvError('image_invalid', `the image holds ${over}`);
  }
}

/** A Date, because Node takes a negative number for the present; within what ext4 can express (1901 to 2446). */
function timeOf(ms: number): Date {
  return new Date(Math.min(Math.max(ms, -(2 ** 31) * 1000), (2 ** 33 + 2 ** 32) * 1000));
}

/** Faults that come from what the entry asks for, told with its name; a full disk and the like stay what they are. */
function asImageError(error: unknown, name: string): unknown {
  if (error instanceof AenvError) {
    const own = error.code === 'image_invalid' && !error.message.includes('layer entry');
    return own ? new AenvError('image_invalid', `layer entry ${quoted(name)}: ${error.message}`) : error;
  }
  if (isCode(error, 'ENAMETOOLONG', 'EINVAL', 'EMLINK', 'ENOTDIR', 'ELOOP', 'EILSEQ')) {
    return new AenvError('image_invalid', `layer entry ${quoted(name)}: ${String(error)}`, { cause: error });
  }
  return isCode(error, 'ENOSPC') ? AenvError.from(error) : error;
}
