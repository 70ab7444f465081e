import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** Inputs of an artefact by name. */
export type Inputs = Readonly<Record<string, string | Uint8Array>>;

/**
 * The digest of everything that an artefact is made of: names and contents, each with its length in front, so that no
 * two different sets of inputs give the same bytes. The order of the names does not matter.
 * @returns sha256 in hex
 */
export function digestInputs(inputs: Inputs): string {
  const hash = createHash('sha256');
  for (const name of Object.keys(inputs).sort()) {
    for (const part of [name, inputs[name] ?? '']) {
      const bytes = typeof part === 'string' ? Buffer.from(part) : part;
      hash.update(`${bytes.length}:`).update(bytes);
    }
  }
  return hash.digest('hex');
}

/**
 * The source files in folders and below as inputs, tests left out: what builds an artefact is a part of what it is made
 * of. Named by folder and file, wherever the repository lies.
 */
export async function sourceInputs(...folders: readonly string[]): Promise<Readonly<Record<string, Uint8Array>>> {
  const inputs: Record<string, Uint8Array> = {};
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/\.(ts|js|c|h|json)$/.test(entry.name) || entry.name.endsWith('.test.ts')) continue;
      const path = join(entry.parentPath, entry.name);
      if (path.includes('/node_modules/')) continue;
      inputs[relative(join(folder, '../..'), path)] = await readFile(path);
    }
  }
  return inputs;
}
