export type TarType = 'file' | 'directory' | 'symlink' | 'link' | 'character-device' | 'block-device' | 'fifo';

/** One member of an archive. `name` and `linkName` hold one byte a character (latin1); nothing in them is checked. */
export interface TarEntry {
  readonly type: TarType;
  readonly name: string;
  readonly linkName: string;
  /** permission bits, setuid, setgid and sticky included */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** of the content, with the holes of sparse members */
  readonly size: number;
  readonly mtime: { readonly seconds: number; readonly nanoseconds: number };
  readonly devMajor: number;
  readonly devMinor: number;
  readonly xattrs: ReadonlyMap<string, Buffer>;
}

const TYPES: Readonly<Record<string, TarType>> = {
  '0': 'file',
  '7': 'file',
  S: 'file',
  '1': 'link',
  '2': 'symlink',
  '3': 'character-device',
  '4': 'block-device',
  '5': 'directory',
  '6': 'fifo',
};

/** The type of a flag, or undefined for one that stands for no file. */
export function typeOf(flag: string, name: string): TarType | undefined {
  const type = TYPES[flag];
  // Archives older than POSIX mark directories only by the trailing slash.
  return type === 'file' && name.endsWith('/') ? 'directory' : type;
}
