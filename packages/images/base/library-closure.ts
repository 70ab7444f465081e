import type { PackageRecord } from '@aenv/platform/debian/contract.ts';

/** What a suite says about packages. */
export type QueryPackages = (names: readonly string[]) => Promise<readonly PackageRecord[]>;

/** A shared library; packages with data or documentation for browsers have names like it. */
const LIBRARY = /^lib(?!js-)/;
const MAX_ROUNDS = 20;

/**
 * The packages and the shared libraries that they need, and these need, as far as `installed` lacks them. Other
 * dependencies are not followed: Debian's Python packages depend on far more than they need (matplotlib, for one, on
 * compilers and a window system), and what is unpacked only, no package manager sees.
 */
export async function withLibraries(
  names: readonly string[],
  installed: ReadonlySet<string>,
  query: QueryPackages,
): Promise<readonly string[]> {
  const found = new Set(names);
  let wanted: readonly string[] = names;
  for (let round = 0; wanted.length > 0 && round < MAX_ROUNDS; round++) {
    const records = await query(wanted);
    const needed = records.flatMap(({ depends }) => firstAlternatives(depends));
    wanted = [...new Set(needed)].filter((name) => LIBRARY.test(name) && !installed.has(name) && !found.has(name));
    for (const name of wanted) found.add(name);
  }
  return [...found];
}

/** Names in a Depends field (deb-control(5)); of alternatives the first, which is the one that Debian prefers. */
export function firstAlternatives(depends: string): string[] {
  return depends.split(',').flatMap((part) => /^\s*([a-z0-9][a-z0-9+.-]+)/.exec(part)?.[1] ?? []);
}
