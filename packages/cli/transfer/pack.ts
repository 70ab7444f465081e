import { createReadStream } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { type Header, type Pack, pack } from 'tar-stream';

export interface PackEvents {
  onBytes(count: number): void;
  /** something that a tar of ours does not carry */
  onSkipped(path: string, reason: string): void;
}

/**
 * A tar of a local file or tree: entries of a folder are named relative to it, a single file is one entry called
 * `name`. Modes, mtimes, empty folders, symbolic links as links, hard links as such; fifos, sockets, devices and names
 * that are no UTF-8 are skipped and told.
 */
export function packTree(path: string, name: string, events: PackEvents): Readable {
  const tar = pack();
  void (async () => {
    const info = await lstat(path);
    const seen = new Map<string, string>();
    if (info.isDirectory()) await packFolder(tar, path, '', seen, events);
    else await packEntry(tar, path, name, seen, events);
    tar.finalize();
  })().catch((error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))));
  return Readable.from(tar);
}

/** The name for a file that is sent alone. */
export function entryName(remote: string, local: string): string {
  return remote.endsWith('/') ? basename(local) : basename(remote);
}

async function packFolder(tar: Pack, folder: string, prefix: string, seen: Map<string, string>, events: PackEvents) {
  const names = await readdir(folder, { encoding: 'buffer' });
  names.sort(Buffer.compare);
  for (const bytes of names) {
    const name = bytes.toString('utf8');
    if (!Buffer.from(name, 'utf8').equals(bytes)) {
      events.onSkipped(join(folder, name), 'the name is not UTF-8');
      continue;
    }
    await packEntry(tar, join(folder, name), prefix + name, seen, events);
  }
}

async function packEntry(tar: Pack, path: string, name: string, seen: Map<string, string>, events: PackEvents) {
  const info = await lstat(path);
  const header: EntryHeader = {
    name,
    mode: info.mode & 0o7777,
    mtime: info.mtime,
    pax: { mtime: (info.mtimeMs / 1000).toFixed(6) },
  };
  if (info.isSymbolicLink()) {
    await add(tar, { ...header, type: 'symlink', linkname: await readlink(path) });
  } else if (info.isDirectory()) {
    await add(tar, { ...header, name: `${name}/`, type: 'directory' });
    await packFolder(tar, path, `${name}/`, seen, events);
  } else if (info.isFile()) {
    const identity = `${info.dev}:${info.ino}`;
    const first = info.nlink > 1 ? seen.get(identity) : undefined;
    if (first !== undefined) {
      await add(tar, { ...header, type: 'link', linkname: first });
      return;
    }
    seen.set(identity, name);
    await addFile(tar, path, { ...header, type: 'file', size: info.size }, events);
  } else {
    events.onSkipped(path, info.isFIFO() ? 'a fifo' : info.isSocket() ? 'a socket' : 'a device');
  }
}

async function add(tar: Pack, header: EntryHeader): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    tar.entry(header, '', (error) => (error ? reject(error) : resolve()));
  });
}

async function addFile(tar: Pack, path: string, header: EntryHeader, events: PackEvents): Promise<void> {
  const size = header.size ?? 0;
  if (size === 0) return await add(tar, header);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sink = tar.entry(header, (error) => (error ? reject(error) : resolve()));
  promise.catch(() => {});
  // Exactly as many bytes as the header says: a file that grows meanwhile is cut, one that shrinks is an error.
  for await (const chunk of createReadStream(path, { end: size - 1 })) {
    events.onBytes((chunk as Buffer).length);
    if (!sink.write(chunk)) await new Promise<void>((drained) => sink.once('drain', drained));
  }
  sink.end(undefined);
  await promise;
}

type EntryHeader = Partial<Header> & Pick<Header, 'name'>;
