import type { Stats } from 'node:fs';
import { lstat, mkdir, readlink } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isCode } from '../errors/is-code.ts';
import { quoted } from '../tar/reader.ts';

/** As many as the kernel follows in one path (path_resolution(7)). */
const MAX_LINKS = 40;

/**
 * A folder of the host that holds the root file system of an image. All names inside come from the image and may be
 * hostile: they are resolved here as the guest would resolve them, with this folder as `/`, so that no link leads out.
 * Nobody else may write to the folder meanwhile.
 *
 * Paths are relative, without leading or trailing slashes, and hold one byte a character (latin1); '' is the root.
 */
export class RootDir {
  readonly #root: Buffer;
  /** folders seen to be real ones, so that deep trees are not looked at again and again */
  #known = new Set<string>();

  /** @param root absolute path of the folder on the host */
  constructor(root: string) {
    this.#root = Buffer.from(root, 'utf8');
  }

  /** The path on the host. Only for results of `resolveFolder` plus one name: the kernel would follow links. */
  host(path: string): Buffer {
    if (path === '') return this.#root;
    return Buffer.concat([this.#root, Buffer.from(`/${path}`, 'latin1')]);
  }

  /** The status of what stands there itself, not of what a link points to; undefined when there is nothing. */
  async lstat(path: string): Promise<Stats | undefined> {
    try {
      return await lstat(this.host(path));
    } catch (error) {
      if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
      throw error;
    }
  }

  /**
   * The real path of a folder, links inside the root followed.
   * @param create makes what is missing (0755, owned by root) and replaces files that stand in the way
   * @returns undefined when it does not exist and was not to be made
   */
  async resolveFolder(parts: readonly string[], create?: FolderMaker): Promise<string | undefined> {
    const todo = [...parts];
    let at: string[] = [];
    let links = 0;
    for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
      if (part === '' || part === '.') continue;
      if (part === '..') {
        at.pop();
        continue;
      }
      const path = [...at, part].join('/');
      if (!this.#known.has(path)) {
        const status = await this.lstat(path);
        if (status?.isSymbolicLink()) {
          if (++links > MAX_LINKS) throw new AenvError('image_invalid', `too many links on the way to ${quoted(path)}`);
          const target = (await readlink(this.host(path), { encoding: 'latin1' })).split('/');
          if (target[0] === '') at = [];
          todo.unshift(...target);
          continue;
        }
        if (!status?.isDirectory()) {
          if (create === undefined) return undefined;
          if (status !== undefined) await create.clear(path);
          await mkdir(this.host(path), { mode: 0o755 });
          create.made(path);
        }
        this.#known.add(path);
      }
      at.push(part);
    }
    return at.join('/');
  }

  /** Must be called after a folder was removed or replaced. */
  forget(): void {
    this.#known = new Set();
  }
}

export interface FolderMaker {
  /** removes a file that stands where a folder is needed */
  clear(path: string): Promise<void>;
  /** told of every folder that was made */
  made(path: string): void;
}

export function join(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}
