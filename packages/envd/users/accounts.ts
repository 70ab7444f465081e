import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A line of passwd(5). */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

export interface Group {
  readonly name: string;
  readonly gid: number;
  readonly members: readonly string[];
}

/** The accounts of the guest at one moment. */
export class AccountTable {
  readonly #byName = new Map<string, Account>();
  readonly #byUid = new Map<number, Account>();
  readonly #groups: readonly Group[];
  readonly #groupNames = new Map<number, string>();
  readonly #gids = new Map<string, number>();

  constructor(accounts: readonly Account[], groups: readonly Group[]) {
    // The first line counts, as for getpwnam(3).
    for (const account of accounts) {
      if (!this.#byName.has(account.name)) this.#byName.set(account.name, account);
      if (!this.#byUid.has(account.uid)) this.#byUid.set(account.uid, account);
    }
    this.#groups = groups;
    for (const group of groups) {
      if (!this.#groupNames.has(group.gid)) this.#groupNames.set(group.gid, group.name);
      if (!this.#gids.has(group.name)) this.#gids.set(group.name, group.gid);
    }
  }

  byName(name: string): Account | undefined {
    return this.#byName.get(name);
  }

  byUid(uid: number): Account | undefined {
    return this.#byUid.get(uid);
  }

  gidOf(group: string): number | undefined {
    return this.#gids.get(group);
  }

  /** The user's name, or the number when there is no account. */
  userName(uid: number): string {
    return this.#byUid.get(uid)?.name ?? String(uid);
  }

  groupName(gid: number): string {
    return this.#groupNames.get(gid) ?? String(gid);
  }

  /** The primary group and all groups that list the user. */
  groupsOf(name: string, gid: number): number[] {
    const gids = new Set([gid]);
    for (const group of this.#groups) if (group.members.includes(name)) gids.add(group.gid);
    return [...gids];
  }
}

/** Parses passwd(5); lines that are none are skipped. */
export function parsePasswd(text: string): Account[] {
  const accounts: Account[] = [];
  for (const line of text.split('\n')) {
    const [name, , uid, gid, , home] = line.split(':');
    if (!name || name.startsWith('#') || !isId(uid) || !isId(gid)) continue;
    accounts.push({ name, uid: Number(uid), gid: Number(gid), home: home?.startsWith('/') ? home : '/' });
  }
  return accounts;
}

/** Parses group(5); lines that are none are skipped. */
export function parseGroup(text: string): Group[] {
  const groups: Group[] = [];
  for (const line of text.split('\n')) {
    const [name, , gid, members] = line.split(':');
    if (!name || name.startsWith('#') || !isId(gid)) continue;
    const list = (members ?? '').split(',').map((member) => member.trim());
    groups.push({ name, gid: Number(gid), members: list.filter((member) => member !== '') });
  }
  return groups;
}

/** Decimal and below the value that the kernel takes for "no id". */
export function isId(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,10}$/.test(text) && Number(text) < 0xffff_ffff;
}

/** Reads the accounts of the guest; again only when a file has changed. A missing file counts as empty. */
export class Accounts {
  readonly #files: readonly [string, string];
  #stamp = '';
  #table = new AccountTable([], []);

  /** @param etc the folder with `passwd` and `group` */
  constructor(etc: string) {
    this.#files = [join(etc, 'passwd'), join(etc, 'group')];
  }

  async load(): Promise<AccountTable> {
    const stamps = await Promise.all(this.#files.map(stampOf));
    const stamp = stamps.join(' ');
    if (stamp !== this.#stamp) {
      const [passwd, group] = await Promise.all(this.#files.map(readIfThere));
      this.#table = new AccountTable(parsePasswd(passwd ?? ''), parseGroup(group ?? ''));
      this.#stamp = stamp;
    }
    return this.#table;
  }
}

async function stampOf(path: string): Promise<string> {
  try {
    const info = await stat(path, { bigint: true });
    return `${info.ino}:${info.size}:${info.mtimeNs}:${info.ctimeNs}`;
  } catch {
    return '-';
  }
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return '';
  }
}
