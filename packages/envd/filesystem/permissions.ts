// Bits of st_mode, inode(7).
const TYPE = 0o170000;
const TYPE_LETTERS = new Map([
  [0o040000, 'd'],
  [0o120000, 'L'],
  [0o060000, 'D'],
  [0o020000, 'D'],
  [0o010000, 'p'],
  [0o140000, 'S'],
  [0o100000, ''],
]);
const CHARACTER_DEVICE = 0o020000;
const SET_UID = 0o4000;
const SET_GID = 0o2000;
const STICKY = 0o1000;

/** A file's mode in the notation of Go's fs.FileMode, which E2B's clients show: `-rw-r--r--`, `drwxr-xr-x`, `dtrwxrwxrwx`. */
export function formatMode(mode: number): string {
  let flags = TYPE_LETTERS.get(mode & TYPE) ?? '?';
  if (mode & SET_UID) flags += 'u';
  if (mode & SET_GID) flags += 'g';
  if ((mode & TYPE) === CHARACTER_DEVICE) flags += 'c';
  if (mode & STICKY) flags += 't';
  let bits = '';
  for (let bit = 8; bit >= 0; bit--) bits += mode & (1 << bit) ? 'rwx'[(8 - bit) % 3] : '-';
  return (flags || '-') + bits;
}
