import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, link, lstat, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Attributes } from '../metadata/attributes.ts';

const SLASH = Buffer.from('/');
const CHUNK = 256 * 1024;
const ZEROS = Buffer.alloc(CHUNK);

/**
 * Copies what is at the path with all that is below: content, owners, modes, times, extended attributes, symbolic links
 * as they are, hard links among the copied ones, holes of files as holes. There must be nothing at the target; what was
 * copied before a failure is left there.
 * @throws AenvError `path_invalid` for what cannot be copied: devices, sockets, fifos, other mounts; or the error of the
 *   system call
 */
export async function copyTree(
  source: string,
  target: string,
  attributes: Attributes,
  signal: AbortSignal,
): Promise<void> {
  const from = Buffer.from(source);
  const stats = await lstat(from, { bigint: true });
  await new TreeCopy(attributes, signal, stats.dev).entry(from, Buffer.from(target), stats);
}

class TreeCopy {
  readonly #attributes: Attributes;
  readonly #signal: AbortSignal;
  readonly #device: bigint;
  readonly #buffer = Buffer.alloc(CHUNK);
  /** first copy of each file that has several names */
  readonly #links = new Map<bigint, Buffer>();

  constructor(attributes: Attributes, signal: AbortSignal, device: bigint) {
    this.#attributes = attributes;
    this.#signal = signal;
    this.#device = device;
  }

  async entry(from: Buffer, to: Buffer, stats: BigIntStats): Promise<void> {
    this.#goOn();
    if (stats.isDirectory()) await this.#folder(from, to, stats);
    else if (stats.isSymbolicLink()) await symlink(await readlink(from, { encoding: 'buffer' }), to);
    else if (!stats.isFile()) throw refused(from, 'is a device, a socket or a fifo');
    else if (await this.#file(from, to, stats)) return;
    await this.#attributes.copy(from, to);
  }

  async #folder(from: Buffer, to: Buffer, stats: BigIntStats): Promise<void> {
    if (stats.dev !== this.#device) throw refused(from, 'is a mount of its own');
    // Nobody else looks into it before it is complete.
    await mkdir(to, 0o700);
    for (const name of await readdir(from, { encoding: 'buffer' })) {
      const path = Buffer.concat([from, SLASH, name]);
      await this.entry(path, Buffer.concat([to, SLASH, name]), await lstat(path, { bigint: true }));
    }
  }

  /** @returns whether it is another name of a file that was copied already */
  async #file(from: Buffer, to: Buffer, stats: BigIntStats): Promise<boolean> {
    if (stats.nlink > 1n) {
      const first = this.#links.get(stats.ino);
      if (first !== undefined) {
        await link(first, to);
        return true;
      }
      this.#links.set(stats.ino, to);
    }
    await using input = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    await using output = await open(to, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    await this.#content(input, output);
    const after = await input.stat({ bigint: true });
    if (after.mtimeNs !== stats.mtimeNs || after.size !== stats.size || after.ino !== stats.ino) {
      throw refused(from, 'was changed meanwhile');
    }
    return false;
  }

  async #content(input: FileHandle, output: FileHandle): Promise<void> {
    const buffer = this.#buffer;
    let position = 0;
    for (;;) {
      this.#goOn();
      const { bytesRead } = await input.read(buffer, 0, CHUNK, position);
      if (bytesRead === 0) break;
      const chunk = buffer.subarray(0, bytesRead);
      if (!chunk.equals(ZEROS.subarray(0, bytesRead))) {
        for (let at = 0; at < bytesRead; ) {
          at += (await output.write(chunk, at, bytesRead - at, position + at)).bytesWritten;
        }
      }
      position += bytesRead;
    }
    await output.truncate(position);
  }

  #goOn(): void {
    if (this.#signal.aborted) throw new AenvError('internal', 'the client has left');
  }
}

function refused(path: Buffer, why: string): AenvError {
  return new AenvError('path_invalid', `path '${path}' ${why}, so it cannot be moved to another file system`);
}
