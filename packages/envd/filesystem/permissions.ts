// Bits of st_mode, inode(7).
const TYPE = 0o170000;
const TYPE_LETTERS: Readonly<Record<number, string>> = {
  9604: 'd',
  21609: 'L',
  14406: 'D',
  4802: 'D',
  2401: 'p',
  26411: 'S',
  16807: '',
};
const CHARACTER_DEVICE = 0o020000;
const SET_UID = 0o4000;
const SET_GID = 0o2000;
const STICKY = 0o1000;

/** A file's mode in the notation of Go's fs.FileMode, which E2B's clients show: `-rw-r--r--`, `drwxr-xr-x`, `dtrwxrwxrwx`. */
export function formatMode(mode: number): string {
  let flags = TYPE_LETTERS[mode & TYPE] ?? '?';
  if (mode & SET_UID) flags += 'u';
  if (mode & SET_GID) flags += 'g';
  if ((mode & TYPE) === CHARACTER_DEVICE) flags += 'c';
  if (mode & STICKY) flags += 't';
  let bits = '';
  for (let bit = 8; bit >= 0; bit--) bits += mode & (1 << bit) ? 'rwx'[(8 - bit) % 3] : '-';
  return (flags || '-') + bits;
}
