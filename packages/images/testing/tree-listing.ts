import { createHash } from 'node:crypto';
import { type BigIntStats, createReadStream } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { run } from '@aenv/platform/process/run.ts';

/** What can be told apart of a file: one line of text. */
export type TreeListing = ReadonlyMap<string, string>;

/**
 * Everything that the kernel tells of a tree: type, mode, owner, size, time, link structure, content, attributes; by path,
 * one byte a character. Needs root. `lost+found` is left out.
 */
export async function listTree(top: string): Promise<TreeListing> {
  const xattrs = await readXattrs(top);
  const listing = new Map<string, string>();
  /** the first path of each inode */
  const first = new Map<bigint, string>();
  const walk = async (path: string): Promise<void> => {
    const host = Buffer.concat([Buffer.from(top), Buffer.from(path === '' ? '' : `/${path}`, 'latin1')]);
    const status = await lstat(host, { bigint: true });
    const original = first.get(status.ino) ?? path;
    first.set(status.ino, original);
    listing.set(path, [...(await describe(host, status)), `=${original}`, xattrs.get(path) ?? ''].join(' '));
    if (!status.isDirectory()) return;
    const names = await readdir(host, { encoding: 'latin1' });
    for (const name of names.sort()) {
      if (path === '' && name === 'lost+found') continue;
      await walk(path === '' ? name : `${path}/${name}`);
    }
  };
  await walk('');
  return listing;
}

async function describe(host: Buffer, status: BigIntStats): Promise<string[]> {
  const { mode, uid, gid, nlink, mtimeNs, rdev, size } = status;
  // Of folders the kernel's own size says nothing; the links of folders depend on the file system.
  const folder = status.isDirectory();
  const parts = [mode.toString(8), `${uid}:${gid}`, folder ? '' : `${nlink} ${size}`, String(mtimeNs), String(rdev)];
  if (status.isSymbolicLink()) parts.push(await readlink(host, { encoding: 'latin1' }));
  if (status.isFile()) parts.push(await hashOf(host));
  return parts;
}

async function hashOf(host: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(host)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** By path; getfattr(1) escapes what could be misread in octal. */
async function readXattrs(top: string): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await run(['getfattr', '-Rhd', '-m', '-', '-e', 'hex', '.'], { cwd: top, maxOutput: 2 ** 28 });
  const found = new Map<string, string>();
  for (const block of stdout.split('\n\n')) {
    const [head = '', ...lines] = block.split('\n');
    const path = unescaped(head.replace(/^# file: /, ''));
    if (path !== '')
      found.set(
        path === '.' ? '' : path,
        lines
          .filter((line) => line !== '')
          .sort()
          .join(' '),
      );
  }
  return found;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Lines of two listings that differ, at most `most`. */
export function differences(a: TreeListing, b: TreeListing, most = 20): string[] {
  const found: string[] = [];
  for (const path of new Set([...a.keys(), ...b.keys()])) {
    const [left, right] = [a.get(path), b.get(path)];
    if (left !== right) found.push(`${JSON.stringify(path)}\n  ${left ?? 'missing'}\n  ${right ?? 'missing'}`);
  }
  return found.slice(0, most);
}
