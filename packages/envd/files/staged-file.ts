import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath, rename, unlink } from 'node:fs/promises';
import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { errnoOf } from '../filesystem/errors.ts';
import { makeFolders } from '../filesystem/make-folder.ts';
import type { Attributes } from '../metadata/attributes.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { User } from '../users/users.ts';
import { stagingPath } from './staging.ts';

// As many links in a row as the kernel follows, path_resolution(7).
const LINKS_MAX = 40;

/**
 * A file that is being written. Its bytes go to a temporary file in the same folder, which takes the place of the old
 * one at the end: an upload that breaks off leaves the old content. Symbolic links at the path are followed, as open(2)
 * does it.
 */
export class StagedFile {
  readonly #target: string;
  readonly #file: FileHandle;
  #temporary: string;
  #state: 'open' | 'done' = 'open';

  private constructor(target: string, temporary: string, file: FileHandle) {
    this.#target = target;
    this.#temporary = temporary;
    this.#file = file;
  }

  /**
   * Missing parents are made and belong to the user, like the file itself. An existing file's mode is kept.
   * @throws AenvError `path_invalid` for a folder or a special file; or the error of the system call
   */
  static async create(path: string, user: User): Promise<StagedFile> {
    const target = await followLinks(path);
    const mode = await modeFor(path, target);
    await makeFolders(posix.dirname(target), user);
    const temporary = stagingPath(target, 'new');
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const file = await open(temporary, flags, 0o600);
    const staged = new StagedFile(target, temporary, file);
    try {
      await file.chown(user.uid, user.gid);
      await file.chmod(mode);
    } catch (error) {
      await staged.discard();
      throw error;
    }
    return staged;
  }

  /** Takes all bytes, waiting for the disk. Rejects when the source fails or ends before its time. */
  async write(content: Readable): Promise<void> {
    for await (const chunk of content.iterator({ destroyOnReturn: false })) await this.append(chunk);
  }

  async append(chunk: Uint8Array): Promise<void> {
    for (let offset = 0; offset < chunk.length; ) {
      const { bytesWritten } = await this.#file.write(chunk, offset);
      offset += bytesWritten;
    }
  }

  /**
   * Gives the file its metadata. It is a new file, so it has none of the old one.
   * @returns false when the file system cannot keep any
   */
  setMetadata(metadata: Metadata, attributes: Attributes): Promise<boolean> {
    return attributes.write(this.#temporary, metadata);
  }

  async commit(): Promise<void> {
    await this.#file.close();
    if (await exists(this.#target)) {
      const old = stagingPath(this.#target, 'old');
      await rename(this.#temporary, old);
      this.#temporary = old;
    }
    await rename(this.#temporary, this.#target);
    this.#state = 'done';
  }

  /** Idempotent; without effect after `commit`. */
  async discard(): Promise<void> {
    if (this.#state === 'done') return;
    this.#state = 'done';
    await this.#file.close().catch(() => {});
    await unlink(this.#temporary).catch(() => {});
  }
}

/** The path at the end of the links, which itself need not exist. */
async function followLinks(path: string): Promise<string> {
  let current = path;
  for (let count = 0; count < LINKS_MAX; count++) {
    let link: string;
    try {
      link = await readlink(current);
    } catch (error) {
      // EINVAL: no link; ENOENT: nothing there yet.
      if (errnoOf(error) === 'EINVAL' || errnoOf(error) === 'ENOENT') return current;
      throw error;
    }
    // A relative link starts where its folder really is.
    current = posix.resolve(await realpath(posix.dirname(current)), link);
  }
  throw new AenvError('path_invalid', `path '${path}': too many levels of symbolic links`);
}

async function modeFor(path: string, target: string): Promise<number> {
  try {
    const existing = await lstat(target);
    if (existing.isDirectory()) throw new AenvError('path_invalid', `path '${path}' is a directory`);
    if (!existing.isFile()) throw new AenvError('path_invalid', `path '${path}' is not a regular file`);
    return existing.mode & 0o777;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 0o644;
    throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}
