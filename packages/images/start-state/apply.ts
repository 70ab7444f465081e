import type { ImageFiles } from '../ext4/files/image-files.ts';
import type { FolderNode } from '../ext4/model/node.ts';
import { type Account, freeId, hasRecord, parseGroup, parsePasswd, withLine } from './accounts.ts';
import { copySkeleton } from './skeleton.ts';

/** Part of cache keys: raise it when the same image would get another state. */
export const START_STATE_VERSION = 1;

/** The account that E2B clients expect in every sandbox. */
const USER = 'user';
const HOME = '/home/user';
const SUDOERS = '/etc/sudoers.d/90-aenv-user';

/**
 * Gives the root file system of an image the state that E2B clients start from: an account `user` (uid 1000 or the next
 * free one) with a home folder from /etc/skel and, where the image has sudo, the right to use it without a password;
 * /usr/local and /code are writable by everyone. An image without /etc/passwd is left alone. May be repeated.
 *
 * Everything is done with our own reads and writes of single files: no program of the image runs.
 * @returns the account, or undefined when the image was left alone
 * @throws AenvError `image_invalid`
 */
export async function applyStartState(files: ImageFiles): Promise<Account | undefined> {
  const passwd = await files.readText('/etc/passwd');
  if (passwd === undefined) return undefined;
  const account = parsePasswd(passwd).find(({ name }) => name === USER) ?? (await addAccount(files, passwd));
  if ((await files.readText('/etc/sudoers')) !== undefined) {
    const rule = `${USER} ALL=(ALL:ALL) NOPASSWD:ALL\n`;
    if ((await files.readText(SUDOERS)) !== rule) await files.writeText(SUDOERS, rule, 0o440);
  }
  openToAll(files);
  return account;
}

async function addAccount(files: ImageFiles, passwd: string): Promise<Account> {
  const groupFile = (await files.readText('/etc/group')) ?? '';
  const groups = parseGroup(groupFile);
  const uid = freeId(parsePasswd(passwd), groups);
  const existing = groups.find(({ name }) => name === USER);
  const gid = existing?.gid ?? uid;
  const shell = files.find('/bin/bash') === undefined ? '/bin/sh' : '/bin/bash';
  if (existing === undefined) await files.writeText('/etc/group', withLine(groupFile, `${USER}:x:${gid}:`), 0o644);
  await addRecord(files, '/etc/gshadow', `${USER}:!::`);
  // No password and no ageing: the empty third field switches the age check off (shadow(5)).
  await addRecord(files, '/etc/shadow', `${USER}:*::0:99999:7:::`);
  await makeHome(files, uid, gid);
  await files.writeText('/etc/passwd', withLine(passwd, `${USER}:x:${uid}:${gid}::${HOME}:${shell}`), 0o644);
  return { name: USER, uid, gid, home: HOME };
}

/** Adds a line to a file that the image may do without. */
async function addRecord(files: ImageFiles, path: string, line: string): Promise<void> {
  const text = await files.readText(path);
  if (text === undefined || hasRecord(text, USER)) return;
  await files.writeText(path, withLine(text, line), 0o640);
}

async function makeHome(files: ImageFiles, uid: number, gid: number): Promise<void> {
  const home = files.makeFolder(HOME);
  const skeleton = files.folder('/etc/skel');
  if (skeleton !== undefined && !isInside(home, skeleton)) await copySkeleton(files, skeleton, home, uid, gid);
  files.setAttributes(home, { mode: 0o755, uid, gid, mtime: home.mtime });
}

function isInside(folder: FolderNode, outer: FolderNode): boolean {
  for (let at: FolderNode | undefined = folder; at !== undefined; at = at.parent) if (at === outer) return true;
  return false;
}

/** Folders only: programs keep their modes. */
function openToAll(files: ImageFiles): void {
  files.setMode(files.makeFolder('/code'), 0o777);
  const local = files.folder('/usr/local');
  if (local?.parent !== undefined) openFolders(files, local);
}

function openFolders(files: ImageFiles, folder: FolderNode): void {
  files.setMode(folder, 0o777);
  for (const { node } of folder.entries.values()) if (node.kind === 'folder') openFolders(files, node);
}

/**
 * Makes the working directory that the image's configuration names, as container engines do when they start one.
 * @param path absolute path inside the image
 * @throws AenvError `image_invalid` when a file stands in the way
 */
export function makeWorkingDir(files: ImageFiles, path: string): void {
  const bytes = Buffer.from(path, 'utf8').toString('latin1');
  if (files.find(bytes) === undefined) files.makeFolder(bytes);
}
