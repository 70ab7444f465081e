import { realpath } from 'node:fs/promises';
import { versionOfInstall } from '@aenv/vmm/qemu/install/packages-file.ts';
import type { AssetEntry } from '../contract.ts';
import { filesOf, readImageRecord } from '../images/image-record.ts';
import { addSnapshots, References } from '../roots/records.ts';

/** What is needed of the assets, and by whom it is not known. */
export interface Marked {
  readonly needed: ReadonlySet<AssetEntry>;
  readonly unneeded: readonly AssetEntry[];
  readonly unreadable: ReadonlySet<string>;
}

/**
 * Marks what roots refer to, directly or through machines and images that stay. `isKept` entries stay though nobody
 * refers to them, with all that they need.
 */
export async function markEntries(
  entries: readonly AssetEntry[],
  roots: References,
  isKept: (entry: AssetEntry) => boolean,
): Promise<Marked> {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  const installs = entries.filter(({ kind }) => kind === 'vmm').sort((a, b) => b.usedAt - a.usedAt);
  const versions = await Promise.all(installs.map(({ path }) => versionOfInstall(path)));
  const referredBy = async ({ users, qemus }: References) => {
    const captured = installs.filter((_, index) => qemus.has(versions[index] ?? ''));
    return [...captured, ...(await entriesOf(users.keys(), byPath))];
  };
  const needed = new Set<AssetEntry>();
  const unreadable = new Set(roots.unreadable);
  const waiting = entries.filter(isKept);
  waiting.push(...(await referredBy(roots)));
  // Daemons of earlier versions do not tell which QEMU is theirs: the one that was used last stays.
  waiting.push(...installs.slice(0, 1));
  for (let entry = waiting.pop(); entry !== undefined; entry = waiting.pop()) {
    if (needed.has(entry)) continue;
    needed.add(entry);
    const found = new References();
    await addNeeds(entry, found);
    for (const path of found.unreadable) unreadable.add(path);
    waiting.push(...(await referredBy(found)));
  }
  return { needed, unneeded: entries.filter((entry) => !needed.has(entry)), unreadable };
}

async function addNeeds(entry: AssetEntry, to: References): Promise<void> {
  if (entry.kind === 'machine') await addSnapshots(entry.path, to);
  if (entry.kind !== 'image') return;
  const image = await readImageRecord(entry.path);
  for (const path of image === undefined ? [] : filesOf(image)) to.add(path, image?.name ?? '');
}

/** Entries that these paths lie in, or that they are. Homes may reach the same folder by different ways. */
async function entriesOf(paths: Iterable<string>, byPath: ReadonlyMap<string, AssetEntry>): Promise<AssetEntry[]> {
  const found: AssetEntry[] = [];
  for (const path of paths) {
    for (const way of new Set([path, await realpath(path).catch(() => path)])) {
      for (let at = way; at.length > 1; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
        const entry = byPath.get(at);
        if (entry !== undefined) found.push(entry);
      }
    }
  }
  return found;
}
