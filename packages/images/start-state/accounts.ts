/** A line of passwd(5), one byte a character. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** The well-formed lines of a passwd file; the first of a name or uid counts, as for getpwnam(3). */
export function parsePasswd(text: string): Account[] {
  const accounts: Account[] = [];
  for (const line of text.split('\n')) {
    const [name, , uid, gid, , home] = line.split(':');
    if (name === undefined || name === '' || name.startsWith('#') || !isId(uid) || !isId(gid)) continue;
    accounts.push({ name, uid: Number(uid), gid: Number(gid), home: home ?? '' });
  }
  return accounts;
}

export interface Group {
  readonly name: string;
  readonly gid: number;
}

/** The well-formed lines of a group(5) file. */
export function parseGroup(text: string): Group[] {
  const groups: Group[] = [];
  for (const line of text.split('\n')) {
    const [name, , gid] = line.split(':');
    if (name !== undefined && name !== '' && !name.startsWith('#') && isId(gid))
      groups.push({ name, gid: Number(gid) });
  }
  return groups;
}

/** The first id from 1000 on that neither an account nor a group has. */
export function freeId(accounts: readonly Account[], groups: readonly Group[]): number {
  const taken = new Set([...accounts.flatMap((account) => [account.uid, account.gid]), ...groups.map((g) => g.gid)]);
  let id = 1000;
  while (taken.has(id)) id++;
  return id;
}

/** The file with one more line at its end. */
export function withLine(text: string, line: string): string {
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${line}\n`;
}

/** Whether a file of colon-separated records has one with this name. */
export function hasRecord(text: string, name: string): boolean {
  return text.split('\n').some((line) => line.startsWith(`${name}:`));
}

function isId(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,10}$/.test(text) && Number(text) < 2 ** 32 - 1;
}
