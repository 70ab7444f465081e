/** A watched folder and its place below the root. Names have one byte in each character. */
export interface Folder {
  readonly watch: number;
  name: string;
  /** undefined for the root, and for a folder that is nowhere */
  parent: Folder | undefined;
  readonly children: Map<string, Folder>;
  /** whether something in it, or below, could not be found under the path that it had then */
  incomplete: boolean;
}

/**
 * The watched folders by their watches. A watch belongs to the folder itself and not to its path, so a folder that is
 * moved keeps it, with all that is below.
 */
export class FolderTree {
  readonly root: Folder;
  readonly #byWatch = new Map<number, Folder>();

  constructor(watch: number) {
    this.root = { watch, name: '', parent: undefined, children: new Map(), incomplete: false };
    this.#byWatch.set(watch, this.root);
  }

  get(watch: number): Folder | undefined {
    return this.#byWatch.get(watch);
  }

  /**
   * Puts a folder at a place, from wherever it was; whatever was at the place is nowhere then. Undefined when it would be
   * in itself: the disk is ahead of what is known, and the events that lead there are still to come.
   */
  place(watch: number, parent: Folder, name: string): Folder | undefined {
    const folder = this.#byWatch.get(watch) ?? {
      watch,
      name,
      parent: undefined,
      children: new Map(),
      incomplete: false,
    };
    for (let at: Folder | undefined = parent; at !== undefined; at = at.parent) if (at === folder) return undefined;
    this.#byWatch.set(watch, folder);
    this.#detach(folder);
    const before = parent.children.get(name);
    if (before !== undefined) {
      this.#detach(before);
      // What was found under this path may have been of either of them.
      folder.incomplete = true;
    }
    folder.name = name;
    folder.parent = parent;
    parent.children.set(name, folder);
    return folder;
  }

  /** The folder, or one above it, must have been moved: when that is told, it has to be read again. */
  markIncomplete(folder: Folder): void {
    for (let at: Folder | undefined = folder; at !== undefined; at = at.parent) at.incomplete = true;
  }

  /** Forgets a folder whose watch is gone. */
  forget(folder: Folder): void {
    this.#detach(folder);
    this.#byWatch.delete(folder.watch);
  }

  /** Forgets a folder with all that is below it. @returns their watches */
  prune(folder: Folder): number[] {
    const watches: number[] = [];
    for (const stack = [folder]; ; ) {
      const next = stack.pop();
      if (next === undefined) return watches;
      stack.push(...next.children.values());
      watches.push(next.watch);
      this.forget(next);
    }
  }

  /** The path of a folder below the root, empty for the root itself; undefined for one that is nowhere. */
  pathOf(folder: Folder): string | undefined {
    const names: string[] = [];
    let at = folder;
    for (; at.parent !== undefined; at = at.parent) names.push(at.name);
    return at === this.root ? names.reverse().join('/') : undefined;
  }

  #detach(folder: Folder): void {
    if (folder.parent?.children.get(folder.name) === folder) folder.parent.children.delete(folder.name);
    folder.parent = undefined;
  }
}
