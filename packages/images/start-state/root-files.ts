import type { NodeKind, Timestamp } from '../ext4/model/node.ts';

export interface Attributes {
  /** permission bits, setuid, setgid and sticky included */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** absent: the epoch */
  readonly mtime?: Timestamp;
}

type Later<T> = T | Promise<T>;

/**
 * Single files of the root file system of an image, read and changed by us. Paths mean what they mean in the guest: links
 * are followed inside the image and nowhere else. Texts and names hold one byte a character (latin1), so that writing one
 * back changes nothing.
 */
export interface RootFiles<N extends { readonly kind: NodeKind }> {
  /** What a path means; undefined when it does not exist. */
  find(path: string): Later<N | undefined>;
  /** The folder of a path, made with all above it (0755, owned by root) where missing. */
  makeFolder(path: string): Later<N>;
  /**
   * Names of a folder without `.` and `..`. A file that is met twice is the same object: in a file system that is damaged a
   * folder may be found below itself.
   */
  entries(folder: N): Iterable<readonly [string, N]> | AsyncIterable<readonly [string, N]>;
  /** Whether a folder is another one, or below it. */
  isInside(folder: N, outer: N): Later<boolean>;
  addFolder(parent: N, name: string, attributes: Attributes): Later<N>;
  addSymlink(parent: N, name: string, target: string, attributes: Attributes): Later<void>;
  addFile(parent: N, name: string, content: Buffer, attributes: Attributes): Later<void>;
  attributes(node: N): Later<Required<Attributes>>;
  /** Bytes of a file. */
  size(file: N): Later<number>;
  /** The content of a file that is known to be small. */
  content(file: N): Later<Buffer>;
  target(link: N): Later<string>;
  setAttributes(node: N, attributes: Attributes): Later<void>;
  setMode(node: N, mode: number): Later<void>;
  /**
   * @returns undefined when there is no such regular file
   * @throws AenvError `image_invalid` when it is larger than 1 MiB
   */
  readText(path: string): Later<string | undefined>;
  /**
   * Gives a file another content; owner, mode and time stay, and so does what other names of it show. Where there is none
   * it is made, with this mode, and belongs to root.
   */
  writeText(path: string, text: string, mode: number): Later<void>;
}
