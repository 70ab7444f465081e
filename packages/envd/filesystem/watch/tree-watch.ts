import { realpath, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { EventType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isStaging } from '../../files/staging.ts';
import { type Change, EventTypes, WATCHED } from './changes.ts';
import { type Folder, FolderTree } from './folder-tree.ts';
import { IN, Inotify, type InotifyEvent } from './inotify.ts';
import { hasContent, inodeOf, isFolder, readNames } from './read-folder.ts';
import { notWatchable, watchError } from './watch-error.ts';

const BELOW = WATCHED | IN.ONLYDIR | IN.DONT_FOLLOW;
// Changes that are told together and watches that are asked for together, and folders that are read together.
const BATCH = 256;
const PARALLEL = 16;
const { errno } = constants;

interface ReadFolder {
  readonly folder: Folder;
  /** its path below the root */
  readonly place: string;
  /** what is in it */
  readonly names: readonly string[];
}

export interface TreeWatchOptions {
  /** path of the native program */
  readonly native: string;
  /** absolute, may be a link */
  readonly path: string;
  readonly recursive: boolean;
}

/**
 * Watches a folder, or all folders below it.
 *
 * A folder that appears is watched first and read afterwards: what was made in it before the watch is found by reading,
 * what is made later comes as an event, and what is both is told once. A folder that is renamed keeps its watch.
 */
export class TreeWatch {
  readonly #inotify: Inotify;
  /** one byte in each character, without links */
  readonly #root: string;
  /** tells the folder from another one at the same path */
  readonly #inode: number;
  readonly #recursive: boolean;
  readonly #tree: FolderTree;
  readonly #types = new EventTypes();
  /** found by reading, while their own events may still be on the way */
  readonly #found = new Set<string>();
  /** folders between the two halves of their rename, by cookie */
  readonly #moving = new Map<number, Folder>();
  #closed = false;

  private constructor(inotify: Inotify, root: string, inode: number, recursive: boolean, watch: number) {
    this.#inotify = inotify;
    this.#root = root === '/' ? '' : root;
    this.#inode = inode;
    this.#recursive = recursive;
    this.#tree = new FolderTree(watch);
  }

  /**
   * Returns when all that is there is watched.
   * @throws AenvError `path_invalid`, `too_many_watches`; or the error of a system call
   */
  static async open({ native, path, recursive }: TreeWatchOptions): Promise<TreeWatch> {
    const resolved = await realpath(path, 'buffer');
    const root = resolved.toString('latin1');
    const inotify = new Inotify(native);
    try {
      const [watch] = await inotify.add(WATCHED | IN.ONLYDIR, [resolved]);
      if (watch === undefined) throw notWatchable(await inotify.exitCode);
      if (watch < 0) throw watchError(-watch, path);
      const tree = new TreeWatch(inotify, root, (await stat(resolved)).ino, recursive, watch);
      if (recursive) for await (const _ of tree.#enter([tree.#tree.root], false));
      return tree;
    } catch (error) {
      inotify.close();
      throw error;
    }
  }

  /** Where a change is, as bytes. */
  absolute(name: string): Buffer {
    return Buffer.from(name === '' ? this.#root || '/' : `${this.#root}/${name}`, 'latin1');
  }

  /** Calls back when `changes` has given all that has happened until now. */
  mark(reached: () => void): void {
    this.#inotify.mark(reached);
  }

  /**
   * The changes as they come, together what comes together, until `close`.
   * @throws AenvError `watch_overflow` when some were lost, `path_not_found` when the folder is gone, `too_many_watches`
   */
  async *changes(): AsyncGenerator<readonly Change[]> {
    for (let told: Change[] = []; ; ) {
      const event = this.#inotify.take();
      if (event !== undefined) {
        try {
          // Only folders make it wait.
          const fresh = this.#handle(event, told);
          const folder = fresh === undefined ? undefined : await fresh;
          if (folder !== undefined) for await (const change of this.#enter([folder], true)) told.push(change);
        } catch (error) {
          if (told.length > 0 && !this.#closed) yield told;
          throw error;
        }
        if (told.length < BATCH) continue;
      }
      if (this.#closed) return;
      if (told.length > 0) {
        yield told;
        told = [];
      } else if (!(await this.#inotify.wait())) {
        if (this.#closed) return;
        throw notWatchable(await this.#inotify.exitCode);
      }
    }
  }

  close(): void {
    this.#closed = true;
    this.#inotify.close();
  }

  /** Adds what is to be told of an event. @returns a folder that has to be read, where there is one */
  #handle(event: InotifyEvent, told: Change[]): Promise<Folder | undefined> | undefined {
    if (event.mask & IN.Q_OVERFLOW) {
      throw new AenvError('watch_overflow', 'more was changed than could be told, and some of it was lost');
    }
    const folder = this.#tree.get(event.watch);
    if (folder === undefined) return this.#abandon(event.cookie);
    const isRoot = folder === this.#tree.root;
    if (event.mask & (IN.IGNORED | IN.UNMOUNT)) {
      if (isRoot) throw this.#gone();
      this.#tree.forget(folder);
      return undefined;
    }
    // What happens to a folder below, the one above it tells.
    if (event.name === '' && !isRoot) return undefined;
    const place = this.#tree.pathOf(folder);
    if (place === undefined) return this.#abandon(event.cookie);
    const name = join(place, event.name);
    const known = (event.mask & IN.CREATE) !== 0 && this.#found.delete(name);
    if (event.mask & (IN.DELETE | IN.MOVED_FROM)) this.#found.delete(name);
    for (const type of this.#types.of(event)) if (!known) told.push({ name, type });
    if (isRoot && event.mask & (IN.DELETE_SELF | IN.MOVE_SELF)) throw this.#gone();
    const isFolder = this.#recursive && (event.mask & IN.ISDIR) !== 0 && event.name !== '' && !isStaging(event.name);
    return isFolder && !(known && folder.children.has(event.name)) ? this.#follow(event, folder, name) : undefined;
  }

  /** Keeps the tree as it is on the disk. @returns a folder that has to be read */
  async #follow(event: InotifyEvent, parent: Folder, path: string): Promise<Folder | undefined> {
    if (event.mask & IN.MOVED_FROM) await this.#leave(event, parent);
    if (!(event.mask & (IN.CREATE | IN.MOVED_TO))) return undefined;
    const [watch] = await this.#add([path]);
    if (watch === undefined || watch === 'no folder') {
      this.#tree.markIncomplete(parent);
      return this.#abandon(event.cookie);
    }
    const moved = this.#moving.get(event.cookie);
    const folder = this.#tree.place(watch, parent, event.name);
    if (folder !== undefined && folder === moved) {
      this.#moving.delete(event.cookie);
      return folder.incomplete ? folder : undefined;
    }
    // Meanwhile something else has taken the path; what was moved is elsewhere, and the event for that comes.
    this.#abandon(event.cookie);
    return folder;
  }

  /** The first half of a rename. Where no second one follows, the folder has left the tree. */
  async #leave({ name, cookie }: InotifyEvent, parent: Folder): Promise<void> {
    const folder = parent.children.get(name);
    if (folder === undefined) return;
    await this.#inotify.settle();
    const stays = (event: InotifyEvent) =>
      event.cookie === cookie && (event.mask & IN.MOVED_TO) !== 0 && !isStaging(event.name);
    if (this.#inotify.queued(stays)) this.#moving.set(cookie, folder);
    else this.#drop(folder);
  }

  /** Watches no longer what was on its way to a place that cannot be watched. */
  #abandon(cookie: number): undefined {
    const folder = this.#moving.get(cookie);
    this.#moving.delete(cookie);
    if (folder !== undefined) this.#drop(folder);
  }

  #drop(folder: Folder): void {
    for (const watch of this.#tree.prune(folder)) this.#inotify.remove(watch);
  }

  /** Reads folders that are watched, watches and reads all folders in them, and tells of what it finds. */
  async *#enter(folders: readonly Folder[], tell: boolean): AsyncGenerator<Change> {
    for (let level = folders; level.length > 0; ) {
      const below: Folder[] = [];
      for (let start = 0; start < level.length; start += PARALLEL) {
        const batch = level.slice(start, start + PARALLEL).map(async (folder) => {
          const place = this.#tree.pathOf(folder);
          // It is nowhere now; where it turns up, it is read.
          if (place === undefined) return { folder, place: '', names: [] };
          folder.incomplete = false;
          const names = await readNames(this.absolute(place));
          if (names === undefined) this.#tree.markIncomplete(folder);
          return { folder, place, names: names ?? [] };
        });
        const read = await Promise.all(batch);
        if (tell) for (const { place, names } of read) this.#expect(place, names);
        const watched = await this.#watchAll(read);
        for (const { folder, place, names } of read) {
          const inside = watched.get(folder) ?? new Map<string, Folder>();
          below.push(...inside.values());
          if (tell) yield* this.#tell(place, names, inside);
        }
      }
      level = below;
    }
  }

  /** Events of what was just read, where they are still on the way, come before the mark. */
  #expect(place: string, names: readonly string[]): void {
    if (names.length === 0) return;
    for (const name of names) this.#found.add(join(place, name));
    this.#inotify.mark(() => {
      for (const name of names) this.#found.delete(join(place, name));
    });
  }

  async *#tell(place: string, names: readonly string[], folders: ReadonlyMap<string, Folder>): AsyncGenerator<Change> {
    for (let start = 0; start < names.length; start += PARALLEL) {
      const batch = names.slice(start, start + PARALLEL).map(async (each) => {
        const name = join(place, each);
        return { name, hasContent: !folders.has(each) && (await hasContent(this.absolute(name))) };
      });
      for (const { name, hasContent } of await Promise.all(batch)) {
        yield { name, type: EventType.CREATE };
        if (hasContent) yield { name, type: EventType.WRITE };
      }
    }
  }

  /**
   * Watches all folders that are in these ones: to try it with every name is the quickest way to learn which they are.
   * @returns them by their names
   */
  async #watchAll(parents: readonly ReadFolder[]): Promise<Map<Folder, Map<string, Folder>>> {
    const watched = new Map(parents.map(({ folder }) => [folder, new Map<string, Folder>()]));
    const all = parents.flatMap(({ folder, place, names }) => names.map((name) => ({ parent: folder, place, name })));
    for (let start = 0; start < all.length; start += BATCH) {
      const batch = all.slice(start, start + BATCH);
      const watches = await this.#add(batch.map(({ place, name }) => join(place, name)));
      for (const [index, { parent, name }] of batch.entries()) {
        const watch = watches[index];
        if (watch === 'no folder') continue;
        const folder = watch === undefined ? undefined : this.#tree.place(watch, parent, name);
        if (folder === undefined) this.#tree.markIncomplete(parent);
        else watched.get(parent)?.set(name, folder);
      }
    }
    await Promise.all(
      parents.map(async ({ folder, place, names }) => {
        if (watched.get(folder)?.size === names.length) return;
        // When the parent is no longer a folder itself, its names say nothing.
        if (!(await isFolder(this.absolute(place)))) this.#tree.markIncomplete(folder);
      }),
    );
    return watched;
  }

  /** Watches folders below the root; undefined for what has vanished. */
  async #add(names: readonly string[]): Promise<(number | 'no folder' | undefined)[]> {
    const paths = names.map((name) => this.absolute(name));
    const watches = await this.#inotify.add(BELOW, paths);
    if (watches.length < paths.length) throw notWatchable(await this.#inotify.exitCode);
    if (watches.includes(-errno.ENOENT)) await this.#checkRoot();
    return watches.map((watch, index) => {
      if (watch >= 0) return watch;
      if (watch === -errno.ENOENT) return undefined;
      if (watch === -errno.ENOTDIR || watch === -errno.ELOOP) return 'no folder';
      throw watchError(-watch, String(paths[index]));
    });
  }

  /** When the folder is moved together with its parent, events go on, but nothing is found any more. */
  async #checkRoot(): Promise<void> {
    if ((await inodeOf(this.absolute(''))) === this.#inode) return;
    await this.#inotify.settle();
    const ends = IN.DELETE_SELF | IN.MOVE_SELF | IN.IGNORED | IN.UNMOUNT;
    const { watch } = this.#tree.root;
    // Any other end of it is told in its turn.
    if (!this.#inotify.queued((event) => event.watch === watch && (event.mask & ends) !== 0)) throw this.#gone();
  }

  #gone(): AenvError {
    return new AenvError('path_not_found', `the watched directory '${this.absolute('')}' is no longer there`);
  }
}

function join(folder: string, name: string): string {
  return folder === '' || name === '' ? folder + name : `${folder}/${name}`;
}
