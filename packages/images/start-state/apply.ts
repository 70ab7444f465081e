import { chmod, lchown, readdir } from 'node:fs/promises';
import { makeFolder, readText, resolveFile, writeText } from '../layers/files-of.ts';
import { join, RootDir } from '../layers/root-dir.ts';
import { type Account, freeId, hasRecord, parseGroup, parsePasswd, withLine } from './accounts.ts';
import { copySkeleton } from './skeleton.ts';

/** The account that E2B clients expect in every sandbox. */
const USER = 'user';
const HOME = '/home/user';
const SUDOERS = 'etc/sudoers.d/90-aenv-user';

/**
 * Gives the root file system of an image the state that E2B clients start from: an account `user` (uid 1000 or the next
 * free one) with a home folder from /etc/skel and, where the image has sudo, the right to use it without a password;
 * /usr/local and /code are writable by everyone. An image without /etc/passwd is left alone. May be repeated.
 *
 * Everything is done with our own reads and writes inside the folder: no program of the image runs, and no link of it
 * is followed out of the folder.
 * @returns the account, or undefined when the image was left alone
 */
export async function applyStartState(rootDir: string): Promise<Account | undefined> {
  const root = new RootDir(rootDir);
  const passwd = await readText(root, 'etc/passwd');
  if (passwd === undefined) return undefined;
  const account = parsePasswd(passwd).find(({ name }) => name === USER) ?? (await addAccount(root, passwd));
  if ((await readText(root, 'etc/sudoers')) !== undefined) {
    await writeText(root, SUDOERS, `${USER} ALL=(ALL:ALL) NOPASSWD:ALL\n`, 0o440);
  }
  await openToAll(root);
  return account;
}

async function addAccount(root: RootDir, passwd: string): Promise<Account> {
  const groupFile = (await readText(root, 'etc/group')) ?? '';
  const groups = parseGroup(groupFile);
  const uid = freeId(parsePasswd(passwd), groups);
  const existing = groups.find(({ name }) => name === USER);
  const gid = existing?.gid ?? uid;
  const shell = (await resolveFile(root, 'bin/bash')) === undefined ? '/bin/sh' : '/bin/bash';
  if (existing === undefined) await writeText(root, 'etc/group', withLine(groupFile, `${USER}:x:${gid}:`), 0o644);
  await addRecord(root, 'etc/gshadow', `${USER}:!::`);
  // No password and no ageing: the empty third field switches the age check off (shadow(5)).
  await addRecord(root, 'etc/shadow', `${USER}:*::0:99999:7:::`);
  await makeHome(root, uid, gid);
  await writeText(root, 'etc/passwd', withLine(passwd, `${USER}:x:${uid}:${gid}::${HOME}:${shell}`), 0o644);
  return { name: USER, uid, gid, home: HOME };
}

/** Adds a line to a file that the image may do without. */
async function addRecord(root: RootDir, file: string, line: string): Promise<void> {
  const text = await readText(root, file);
  if (text === undefined || hasRecord(text, USER)) return;
  await writeText(root, file, withLine(text, line), 0o640);
}

async function makeHome(root: RootDir, uid: number, gid: number): Promise<void> {
  const home = await makeFolder(root, HOME.split('/'));
  const skeleton = await root.resolveFolder(['etc', 'skel']);
  if (skeleton !== undefined && !home.startsWith(skeleton)) await copySkeleton(root, skeleton, home, uid, gid);
  await lchown(root.host(home), uid, gid);
  await chmod(root.host(home), 0o755);
}

/** Folders only: programs keep their modes. */
async function openToAll(root: RootDir): Promise<void> {
  const code = await makeFolder(root, ['code']);
  await chmod(root.host(code), 0o777);
  const local = await root.resolveFolder(['usr', 'local']);
  if (local !== undefined && local !== '') await openFolders(root, local);
}

async function openFolders(root: RootDir, folder: string): Promise<void> {
  await chmod(root.host(folder), 0o777);
  for (const name of await readdir(root.host(folder), { encoding: 'latin1' })) {
    const path = join(folder, name);
    if ((await root.lstat(path))?.isDirectory()) await openFolders(root, path);
  }
}

/**
 * Makes the working directory that the image's configuration names, as container engines do when they start one.
 * @param path absolute path inside the image
 */
export async function makeWorkingDir(rootDir: string, path: string): Promise<void> {
  const root = new RootDir(rootDir);
  if ((await resolveFile(root, path.replace(/^\/+/, ''))) !== undefined) return;
  await makeFolder(root, Buffer.from(path, 'utf8').toString('latin1').split('/'));
}
