import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode } from '@aenv/images/errors/is-code.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { sealJson, unsealJson } from '@aenv/platform/files/sealed-json.ts';
import { z } from 'zod';

const HomeFile = z.strictObject({ version: z.literal(1), home: z.string(), paths: z.array(z.string()) });

/** What a home says of itself in the folder of assets. */
export interface HomeClaims {
  readonly home: string;
  /** that its templates refer to, and that its daemon boots */
  readonly paths: readonly string[];
}

export function homeFilePath(homesDir: string, home: string): string {
  return join(homesDir, `${createHash('sha256').update(home).digest('hex').slice(0, 32)}.json`);
}

/** Durable when it resolves. */
export async function writeHomeFile(homesDir: string, { home, paths }: HomeClaims): Promise<void> {
  await mkdir(homesDir, { recursive: true, mode: 0o755 });
  const content: z.infer<typeof HomeFile> = { version: 1, home, paths: [...new Set(paths)].sort() };
  await writeDurable(homeFilePath(homesDir, home), sealJson(content), 0o600);
}

/** All homes that use these assets, and the files that cannot be read. */
export async function readHomeFiles(homesDir: string): Promise<{
  readonly homes: readonly HomeClaims[];
  readonly unreadable: readonly string[];
}> {
  const names = await readdir(homesDir).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  });
  const homes: HomeClaims[] = [];
  const unreadable: string[] = [];
  for (const name of names.filter((known) => known.endsWith('.json') && !known.startsWith('.'))) {
    const path = join(homesDir, name);
    const parsed = await readFile(path, 'utf8').then(
      (text) => HomeFile.safeParse(unsealJson(text)),
      (error: unknown) => {
        if (isCode(error, 'ENOENT')) return undefined;
        throw error;
      },
    );
    if (parsed === undefined) continue;
    if (parsed.success && homeFilePath(homesDir, parsed.data.home) === path) homes.push(parsed.data);
    else unreadable.push(path);
  }
  return { homes, unreadable };
}
