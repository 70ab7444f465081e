import type { NodeKind } from '../ext4/model/node.ts';
import { type Account, freeId, hasRecord, parseGroup, parsePasswd, withLine } from './accounts.ts';
import type { RootFiles } from './root-files.ts';
import { copySkeleton } from './skeleton.ts';

/** Part of cache keys: raise it when the same image would get another state. */
export const START_STATE_VERSION = 1;

/** The account that E2B clients expect in every sandbox. */
const USER = 'user';
const HOME = '/home/user';
const SUDOERS = '/etc/sudoers.d/90-aenv-user';

type AnyNode = { readonly kind: NodeKind };

/**
 * Gives the root file system of an image the state that E2B clients start from: an account `user` (uid 1000 or the next
 * free one) with a home folder from /etc/skel and, where the image has sudo, the right to use it without a password;
 * /usr/local and /code are writable by everyone. An image without /etc/passwd is left alone. May be repeated.
 *
 * Everything is done with our own reads and writes of single files: no program of the image runs.
 * @returns the account, or undefined when the image was left alone
 * @throws AenvError `image_invalid`
 */
export async function applyStartState<N extends AnyNode>(files: RootFiles<N>): Promise<Account | undefined> {
  const passwd = await files.readText('/etc/passwd');
  if (passwd === undefined) return undefined;
  const account = parsePasswd(passwd).find(({ name }) => name === USER) ?? (await addAccount(files, passwd));
  if ((await files.readText('/etc/sudoers')) !== undefined) {
    const rule = `${USER} ALL=(ALL:ALL) NOPASSWD:ALL\n`;
    if ((await files.readText(SUDOERS)) !== rule) await files.writeText(SUDOERS, rule, 0o440);
  }
  await openToAll(files);
  return account;
}

async function addAccount<N extends AnyNode>(files: RootFiles<N>, passwd: string): Promise<Account> {
  const groupFile = (await files.readText('/etc/group')) ?? '';
  const groups = parseGroup(groupFile);
  const uid = freeId(parsePasswd(passwd), groups);
  const existing = groups.find(({ name }) => name === USER);
  const gid = existing?.gid ?? uid;
  const shell = (await files.find('/bin/bash')) === undefined ? '/bin/sh' : '/bin/bash';
  if (existing === undefined) await files.writeText('/etc/group', withLine(groupFile, `${USER}:x:${gid}:`), 0o644);
  await addRecord(files, '/etc/gshadow', `${USER}:!::`);
  // No password and no ageing: the empty third field switches the age check off (shadow(5)).
  await addRecord(files, '/etc/shadow', `${USER}:*::0:99999:7:::`);
  await makeHome(files, uid, gid);
  await files.writeText('/etc/passwd', withLine(passwd, `${USER}:x:${uid}:${gid}::${HOME}:${shell}`), 0o644);
  return { name: USER, uid, gid, home: HOME };
}

/** Adds a line to a file that the image may do without. */
async function addRecord<N extends AnyNode>(files: RootFiles<N>, path: string, line: string): Promise<void> {
  const text = await files.readText(path);
  if (text === undefined || hasRecord(text, USER)) return;
  await files.writeText(path, withLine(text, line), 0o640);
}

async function makeHome<N extends AnyNode>(files: RootFiles<N>, uid: number, gid: number): Promise<void> {
  const home = await files.makeFolder(HOME);
  const skeleton = await files.find('/etc/skel');
  if (skeleton?.kind === 'folder' && !(await files.isInside(home, skeleton))) {
    await copySkeleton(files, skeleton, home, uid, gid);
  }
  const { mtime } = await files.attributes(home);
  await files.setAttributes(home, { mode: 0o755, uid, gid, mtime });
}

/** Folders only: programs keep their modes. */
async function openToAll<N extends AnyNode>(files: RootFiles<N>): Promise<void> {
  await files.setMode(await files.makeFolder('/code'), 0o777);
  const [local, root] = [await files.find('/usr/local'), await files.find('/')];
  if (local?.kind !== 'folder' || root === undefined || (await files.isInside(root, local))) return;
  await openFolders(files, local);
}

async function openFolders<N extends AnyNode>(files: RootFiles<N>, top: N): Promise<void> {
  const found = new Set([top]);
  // What is added meanwhile is gone through as well.
  for (const folder of found) {
    await files.setMode(folder, 0o777);
    for await (const [, node] of files.entries(folder)) if (node.kind === 'folder') found.add(node);
  }
}

/**
 * Makes the working directory that the image's configuration names, as container engines do when they start one.
 * @param path absolute path inside the image
 * @throws AenvError `image_invalid` when a file stands in the way
 */
export async function makeWorkingDir<N extends AnyNode>(files: RootFiles<N>, path: string): Promise<void> {
  const bytes = Buffer.from(path, 'utf8').toString('latin1');
  if ((await files.find(bytes)) === undefined) await files.makeFolder(bytes);
}
