import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Account, type Accounts, type AccountTable, isId } from './accounts.ts';

/** Whom a request acts for. */
export interface User extends Account {
  /** all groups, the primary one included */
  readonly groups: readonly number[];
}

/** Finds users by what requests and settings call them. */
export class Users {
  readonly #accounts: Accounts;
  readonly #defaultUser: () => string | undefined;

  /** @param defaultUser the name that the host set for requests that name nobody */
  constructor(accounts: Accounts, defaultUser: () => string | undefined) {
    this.#accounts = accounts;
    this.#defaultUser = defaultUser;
  }

  accounts(): Promise<AccountTable> {
    return this.#accounts.load();
  }

  /** The named user, or the default one; undefined when there is no such user. */
  async find(name: string | undefined): Promise<User | undefined> {
    const table = await this.#accounts.load();
    return name === undefined || name === '' ? this.#default(table) : resolveUser(table, name);
  }

  /**
   * The user of an Authorization header: the name of its Basic form, its password does not matter.
   * @throws AenvError `user_unknown`
   */
  async fromAuthorization(value: string | undefined): Promise<User> {
    const name = basicName(value);
    const user = await this.find(name);
    if (user === undefined) throw new AenvError('user_unknown', `invalid username: '${name}'`);
    return user;
  }

  /**
   * The user of a `username` query parameter.
   * @throws AenvError `user_unknown`
   */
  async fromQuery(name: string | undefined): Promise<User> {
    const user = await this.find(name);
    if (user === undefined) {
      throw new AenvError('user_unknown', `error looking up user '${name}': user: unknown user ${name}`);
    }
    return user;
  }

  // An image may lack the account that the settings name; the sandbox has to work all the same.
  #default(table: AccountTable): User {
    const configured = this.#defaultUser();
    return (
      (configured === undefined ? undefined : resolveUser(table, configured)) ??
      resolveUser(table, 'user') ??
      withGroups(table, rootAccount(table))
    );
  }
}

/** `name`, `uid`, `name:group` or `uid:gid`, as the USER of an image has them. A number needs no account. */
export function resolveUser(table: AccountTable, text: string): User | undefined {
  const [who = '', groupText] = text.split(':', 2);
  const account = byNameOrNumber(table, who);
  if (account === undefined) return undefined;
  if (groupText === undefined) return withGroups(table, account);
  const gid = table.gidOf(groupText) ?? (isId(groupText) ? Number(groupText) : undefined);
  // With a group named, it is the only one: so do container engines.
  return gid === undefined ? undefined : { ...account, gid, groups: [gid] };
}

function byNameOrNumber(table: AccountTable, who: string): Account | undefined {
  const account = table.byName(who);
  if (account !== undefined) return account;
  if (who === 'root') return rootAccount(table);
  if (!isId(who)) return undefined;
  return table.byUid(Number(who)) ?? { name: who, uid: Number(who), gid: 0, home: '/' };
}

function rootAccount(table: AccountTable): Account {
  return table.byUid(0) ?? { name: 'root', uid: 0, gid: 0, home: '/root' };
}

function withGroups(table: AccountTable, account: Account): User {
  return { ...account, groups: table.groupsOf(account.name, account.gid) };
}

/** The user name of a Basic Authorization header, undefined when there is none. */
export function basicName(value: string | undefined): string | undefined {
  const match = /^basic +([A-Za-z0-9+/=_-]+)$/i.exec(value?.trim() ?? '');
  if (match?.[1] === undefined) return undefined;
  const text = Buffer.from(match[1], 'base64').toString();
  const colon = text.indexOf(':');
  return colon < 0 ? text : text.slice(0, colon);
}
