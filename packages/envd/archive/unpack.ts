import { constants } from 'node:fs';
import {
  chmod,
  chown,
  lchown,
  link,
  lstat,
  lutimes,
  mkdir,
  open,
  realpath,
  symlink,
  unlink,
  utimes,
} from 'node:fs/promises';
import { posix } from 'node:path';
import type { SkippedEntry, UnpackAnswer } from '@aenv/contracts/envd/archive.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { errnoOf, fileError } from '../filesystem/errors.ts';
import { makeFolders } from '../filesystem/make-folder.ts';
import type { User } from '../users/users.ts';
import { safeParts } from './safe-name.ts';
import { readTar, type TarEntry } from './tar-reader.ts';

/**
 * Unpacks an archive below a folder for a user. No entry gets out of the folder: every part of a name is looked at
 * before anything is made, and nothing is written through a symbolic link.
 * @throws AenvError `path_invalid` for a hostile name, `no_space`, `invalid_request` for a damaged archive
 */
export async function unpackTree(source: AsyncIterable<Buffer>, folder: string, user: User): Promise<UnpackAnswer> {
  await makeFolders(folder, user);
  const unpacker = new Unpacker(await realpath(folder), user);
  for await (const entry of readTar(source)) {
    try {
      await unpacker.add(entry);
    } catch (error) {
      throw fileError(error, entry.name);
    }
  }
  return unpacker.finish();
}

class Unpacker {
  readonly #root: string;
  readonly #user: User;
  readonly #skipped: SkippedEntry[] = [];
  /** folders whose mode and time are set last: what is written into them changes both */
  readonly #folders: { readonly path: string; readonly mode: number; readonly mtime: number }[] = [];
  #entries = 0;
  #bytes = 0;

  constructor(root: string, user: User) {
    this.#root = root;
    this.#user = user;
  }

  async add(entry: TarEntry): Promise<void> {
    const parts = safeParts(entry.name);
    // The folder itself, as `tar -c .` names it.
    if (parts.length === 0) return;
    if (entry.type === 'fifo' || entry.type === 'character-device' || entry.type === 'block-device') {
      this.#skipped.push({ path: parts.join('/'), reason: entry.type === 'fifo' ? 'fifo' : 'device' });
      return;
    }
    const path = await this.#place(parts, entry.name);
    if (entry.type === 'directory') await this.#folder(path, entry);
    else if (entry.type === 'file') await this.#file(path, entry);
    else if (entry.type === 'symlink') await this.#symlink(path, entry);
    else await this.#link(path, entry);
    this.#entries += 1;
  }

  async finish(): Promise<UnpackAnswer> {
    for (const { path, mode, mtime } of this.#folders.reverse()) {
      await chmod(path, mode);
      await utimes(path, mtime, mtime);
    }
    return { entries: this.#entries, bytes: this.#bytes, skipped: this.#skipped };
  }

  /** The place of an entry; its parents are folders, and made where they are missing. */
  async #place(parts: readonly string[], name: string): Promise<string> {
    let path = this.#root;
    for (const part of parts.slice(0, -1)) {
      path = posix.join(path, part);
      if ((await this.#makeFolder(path, name)) === 'made') await chown(path, this.#user.uid, this.#user.gid);
    }
    return posix.join(path, parts.at(-1) ?? '');
  }

  async #makeFolder(path: string, name: string): Promise<'made' | 'there'> {
    try {
      await mkdir(path, 0o755);
      return 'made';
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    }
    if ((await lstat(path)).isDirectory()) return 'there';
    throw new AenvError('path_invalid', `entry '${name}' goes through '${path}', which is no directory`);
  }

  async #folder(path: string, { name, mode, mtime }: TarEntry): Promise<void> {
    await this.#makeFolder(path, name);
    await chown(path, this.#user.uid, this.#user.gid);
    this.#folders.push({ path, mode, mtime });
  }

  async #file(path: string, entry: TarEntry): Promise<void> {
    await removeOld(path, entry.name);
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    await using file = await open(path, flags, 0o600);
    try {
      for await (const chunk of entry.content()) {
        for (let offset = 0; offset < chunk.length; ) offset += (await file.write(chunk, offset)).bytesWritten;
        this.#bytes += chunk.length;
      }
    } catch (error) {
      await unlink(path).catch(() => {});
      throw error;
    }
    // The order matters: a change of owner takes the setuid bit away.
    await file.chown(this.#user.uid, this.#user.gid);
    await file.chmod(entry.mode);
    await file.utimes(entry.mtime, entry.mtime);
  }

  async #symlink(path: string, entry: TarEntry): Promise<void> {
    if (entry.linkName === '' || entry.linkName.includes('\0')) {
      throw new AenvError('path_invalid', `entry '${entry.name}' has a link target that no link can have`);
    }
    await removeOld(path, entry.name);
    await symlink(entry.linkName, path);
    await lchown(path, this.#user.uid, this.#user.gid);
    await lutimes(path, entry.mtime, entry.mtime);
  }

  async #link(path: string, entry: TarEntry): Promise<void> {
    const parts = safeParts(entry.linkName);
    const target = parts.length === 0 ? this.#root : await this.#place(parts, entry.linkName);
    const stats = await lstat(target).catch(() => undefined);
    if (stats?.isFile() !== true) {
      throw new AenvError(
        'path_invalid',
        `entry '${entry.name}' is a link to '${entry.linkName}', which is no file here`,
      );
    }
    if (target === path) return;
    await removeOld(path, entry.name);
    await link(target, path);
  }
}

async function removeOld(path: string, name: string): Promise<void> {
  const old = await lstat(path).catch(() => undefined);
  if (old === undefined) return;
  if (old.isDirectory()) throw new AenvError('path_invalid', `entry '${name}' would replace a directory`);
  await unlink(path);
}
