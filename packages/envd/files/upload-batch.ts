import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { fileError } from '../filesystem/errors.ts';
import type { Attributes } from '../metadata/attributes.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { User } from '../users/users.ts';
import { StagedFile } from './staged-file.ts';

/** One element of the answer to an upload. Clients compare these exactly: no further members. */
export interface WrittenFile {
  readonly name: string;
  readonly path: string;
  readonly type: 'file';
  /** absent when there is none */
  readonly metadata?: Metadata;
}

/** The files of one request, staged one after the other and put in place together at the end. */
export class UploadBatch implements AsyncDisposable {
  readonly #user: User;
  readonly #metadata: Metadata;
  readonly #attributes: Attributes;
  readonly #files = new Map<string, { readonly staged: StagedFile; metadata?: Metadata }>();

  /** @param metadata of each file; empty for none */
  constructor(user: User, metadata: Metadata, attributes: Attributes) {
    this.#user = user;
    this.#metadata = metadata;
    this.#attributes = attributes;
  }

  /**
   * Takes the content of one file, in the speed of the disk.
   * @throws AenvError `path_invalid`, `no_space`, `invalid_request`
   */
  async add(path: string, content: Readable): Promise<void> {
    if (this.#files.has(path)) {
      content.resume();
      throw new AenvError('invalid_request', `path '${path}' is in this upload more than once`);
    }
    try {
      const staged = await StagedFile.create(path, this.#user);
      const file: { readonly staged: StagedFile; metadata?: Metadata } = { staged };
      this.#files.set(path, file);
      await staged.write(content);
      if (Object.keys(this.#metadata).length === 0) return;
      // A file system without attributes takes the content all the same, and the answer says no more than is true.
      if (await staged.setMetadata(this.#metadata, this.#attributes)) file.metadata = this.#metadata;
    } catch (error) {
      content.resume();
      throw uploadError(error, path);
    }
  }

  /** Puts all files in place. */
  async commit(): Promise<WrittenFile[]> {
    const written: WrittenFile[] = [];
    for (const [path, { staged, metadata }] of this.#files) {
      try {
        await staged.commit();
      } catch (error) {
        throw fileError(error, path);
      }
      const file = { name: posix.basename(path), path, type: 'file' } as const;
      written.push(metadata === undefined ? file : { ...file, metadata });
    }
    return written;
  }

  /** Removes what was staged and is not in place. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const { staged } of this.#files.values()) await staged.discard();
  }
}

function uploadError(error: unknown, path: string): AenvError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^(Z_|ERR_.*ZLIB|ECONNRESET|ERR_STREAM_PREMATURE_CLOSE)/.test(code)) {
    return new AenvError('invalid_request', 'the body is incomplete or not what its headers say', { cause: error });
  }
  return fileError(error, path);
}
