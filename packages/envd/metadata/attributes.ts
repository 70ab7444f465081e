import { isUtf8 } from 'node:buffer';
import { constants } from 'node:os';
import { type AppletAnswer, ResidentApplet } from '../native/applet.ts';
import { METADATA_PREFIX, type Metadata } from './metadata.ts';

/**
 * Metadata and other attributes of files, through one native process for all of them: JavaScript has no calls for
 * xattr(7), and a process for each file would make a large listing slow.
 */
export class Attributes {
  readonly #applet: ResidentApplet;

  /** @param native path of the native program */
  constructor(native: string) {
    this.#applet = new ResidentApplet(native, 'xattr');
  }

  /** Starts the process ahead of its first use. */
  warmUp(): void {
    this.#applet.warmUp();
  }

  /**
   * The metadata of files and folders, undefined where there is none. What cannot be read has none, as has what is not
   * there; texts that are not UTF-8 are left out, since no message can hold them. Links have none of their own.
   * @param paths absolute
   */
  async read(paths: readonly (string | Buffer)[]): Promise<(Metadata | undefined)[]> {
    try {
      const answers = await this.#applet.ask(paths.map((path) => [command('get', path)]));
      return answers.map(({ pairs }) => (pairs.length === 0 ? undefined : toMetadata(pairs)));
    } catch {
      // The process was ended: a description without metadata is better than none.
      return paths.map(() => undefined);
    }
  }

  /**
   * Adds metadata to a file.
   * @returns false when its file system cannot keep any
   * @throws the error of setxattr(2)
   */
  async write(path: string, metadata: Metadata): Promise<boolean> {
    const requests = Object.entries(metadata).map(([key, value]) => [
      command('set', path),
      METADATA_PREFIX + key,
      value,
    ]);
    for (const { errno } of await this.#applet.ask(requests)) {
      if (errno === constants.errno.ENOTSUP) return false;
      if (errno !== 0) throw systemError('setxattr', errno);
    }
    return true;
  }

  /**
   * Gives `to` the owner, all extended attributes, the mode and the times of `from`. Links are not followed.
   * @throws the error of the system call
   */
  async copy(from: Buffer, to: Buffer): Promise<void> {
    const [answer] = await this.#applet.ask([[command('copy', from), to]]);
    if (answer !== undefined && answer.errno !== 0) throw systemError('copy of attributes', answer.errno);
  }

  close(): Promise<void> {
    return this.#applet.close();
  }
}

function command(name: 'get' | 'set' | 'copy', path: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${name} `), Buffer.from(path)]);
}

function toMetadata(pairs: AppletAnswer['pairs']): Metadata | undefined {
  const metadata: Record<string, string> = Object.create(null);
  for (const [name, value] of pairs) {
    const [key, text] = [fromBytes(name.slice(METADATA_PREFIX.length)), fromBytes(value)];
    if (key !== undefined && text !== undefined) metadata[key] = text;
  }
  return Object.keys(metadata).length === 0 ? undefined : metadata;
}

/** The text in bytes of which each is a character; undefined when they are not UTF-8. */
function fromBytes(text: string): string | undefined {
  const bytes = Buffer.from(text, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : undefined;
}

function systemError(call: string, errno: number): Error {
  const code = Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `E${errno}`;
  return Object.assign(new Error(`${code}: ${call}`), { code });
}
