import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { HOOKS_MAX } from '@aenv/contracts/envd/restore-api.ts';

/** What run-parts(8) would not take for a program either: backups and files that packages have put aside. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const LEFT_ASIDE = /\.(bak|disabled|orig|rej|sample|sw[a-z]|tmp|dpkg-[a-z]+|rpm[a-z]+)$/;
const EXECUTABLE = 0o111;

/** The names of the hooks in a folder, in their order; none where there is no such folder. */
export function hooksIn(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .filter((name) => NAME.test(name) && !LEFT_ASIDE.test(name) && isExecutable(join(folder, name)))
    .sort()
    .slice(0, HOOKS_MAX);
}

function isExecutable(path: string): boolean {
  try {
    const found = statSync(path);
    return found.isFile() && (found.mode & EXECUTABLE) !== 0;
  } catch {
    return false;
  }
}
