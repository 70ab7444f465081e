import { chmod, link, lstat, lutimes, mkdir, open, rm, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { ARCHIVE_REPORT_KEY, type SkippedEntry } from '@aenv/contracts/envd/archive.ts';
import { extract, type Header } from 'tar-stream';
import { CliError } from '../output/cli-error.ts';
import { printable } from '../output/table.ts';

export interface UnpackResult {
  readonly entries: number;
  /** whether the archive ended as it should */
  readonly skipped: readonly SkippedEntry[];
}

type TarEntry = AsyncIterable<unknown> & { readonly header: Header; resume(): unknown };

const REPORT_LIMIT = 1024 * 1024;

/**
 * Unpacks a tar from a guest below `target`, a local folder that exists. The guest is hostile: a name that is absolute,
 * has `..` or leads through a symbolic link is refused and ends the transfer; nothing is ever written outside.
 * @param rename the single entry's local name, when a single file was asked for
 */
export async function unpackTree(
  source: Readable,
  target: string,
  options: { readonly rename?: string; readonly onBytes: (count: number) => void },
): Promise<UnpackResult> {
  const folders: { path: string; header: Header }[] = [];
  let entries = 0;
  let skipped: readonly SkippedEntry[] = [];
  const tar = extract();
  const feeding = feed(source, tar);
  feeding.catch(() => {});
  for await (const entry of tar) {
    const { header } = entry;
    if (pax(header)[ARCHIVE_REPORT_KEY] === 'skipped') {
      skipped = JSON.parse(await readText(entry)) as SkippedEntry[];
      continue;
    }
    const parts = safeParts(options.rename ?? header.name);
    const path = join(target, ...parts);
    await checkParents(target, parts);
    await writeEntry(entry, path, target, options.onBytes);
    if (header.type === 'directory') folders.push({ path, header });
    entries++;
  }
  await feeding;
  // Modes and times of folders last: a folder may be read-only, and filling it changes its time.
  for (const { path, header } of folders.reverse()) {
    await chmod(path, header.mode & 0o7777);
    await utimes(path, header.mtime, modified(header));
  }
  return { entries, skipped };
}

async function writeEntry(entry: TarEntry, path: string, target: string, onBytes: (count: number) => void) {
  const { header } = entry;
  switch (header.type) {
    case 'directory': {
      const there = await lstat(path).catch(() => undefined);
      if (there !== undefined && !there.isDirectory()) await rm(path);
      if (!there?.isDirectory()) await mkdir(path, { mode: 0o700 });
      break;
    }
    case 'symlink':
      await rm(path, { force: true });
      await symlink(header.linkname, path);
      await lutimes(path, header.mtime, modified(header));
      break;
    case 'link': {
      const parts = safeParts(header.linkname);
      await checkParents(target, parts);
      await rm(path, { force: true });
      await link(join(target, ...parts), path);
      break;
    }
    case 'file':
    case 'contiguous-file': {
      await rm(path, { force: true });
      {
        await using file = await open(path, 'wx', 0o600);
        for await (const chunk of entry) {
          const data = chunk as Buffer;
          onBytes(data.length);
          await file.writeFile(data);
        }
      }
      await chmod(path, header.mode & 0o7777);
      await utimes(path, header.mtime, modified(header));
      return;
    }
    default:
      throw hostile(header.name, `entries of type ${header.type} are not expected`);
  }
  entry.resume();
}

/** The parts of a relative name without `..`; anything else is hostile. */
function safeParts(name: string): string[] {
  const parts = name.replace(/\/+$/, '').split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) {
    throw hostile(name, 'the name leads outside');
  }
  return parts;
}

/** Every folder on the way must be a real one, not a link that an earlier entry planted. */
async function checkParents(target: string, parts: readonly string[]): Promise<void> {
  let path = target;
  for (const part of parts.slice(0, -1)) {
    path = join(path, part);
    const info = await lstat(path).catch(() => undefined);
    if (info === undefined) await mkdir(path, { mode: 0o755 });
    else if (!info.isDirectory()) throw hostile(parts.join('/'), 'it leads through a link or a file');
  }
}

function hostile(name: string, why: string): CliError {
  return new CliError(
    `refused an entry of the archive: ${printable(name)}: ${why}`,
    'The sandbox sent something that no honest archive holds; do not trust what it sent before.',
  );
}

function modified(header: Header): number | Date {
  const exact = Number(pax(header).mtime);
  return Number.isFinite(exact) ? exact : header.mtime;
}

/** PAX records of an entry, none if it has none. */
function pax(header: Header): Readonly<Record<string, unknown>> {
  return typeof header.pax === 'object' && header.pax !== null ? (header.pax as Record<string, unknown>) : {};
}

/** Writes the bytes of the archive into the parser; an archive that breaks off breaks the parser. */
async function feed(source: Readable, tar: ReturnType<typeof extract>): Promise<void> {
  try {
    for await (const chunk of source) {
      if (tar.destroyed) break;
      if (!tar.write(chunk)) {
        await new Promise<void>((resolve) => tar.once('drain', resolve).once('close', resolve));
      }
    }
    tar.end(undefined);
  } catch (error) {
    tar.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}

async function readText(entry: TarEntry): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of entry) {
    size += (chunk as Buffer).length;
    if (size > REPORT_LIMIT) throw hostile(entry.header.name, 'the report is too long');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}
