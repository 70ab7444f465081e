import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/**
 * The digest of everything that an artefact is made of: names and contents, each with its length in front, so that no
 * two different sets of inputs give the same bytes. The order of the names does not matter.
 * @returns sha256 in hex
 */
export function digestInputs(inputs: Readonly<Record<string, string | Uint8Array>>): string {
  const hash = createHash('sha256');
  for (const name of Object.keys(inputs).sort()) {
    for (const part of [name, inputs[name] ?? '']) {
      const bytes = typeof part === 'string' ? Buffer.from(part) : part;
      hash.update(`${bytes.length}:`).update(bytes);
    }
  }
  return hash.digest('hex');
}

/** Files as inputs of `digestInputs`, named by `prefix` and the given relative name. */
export async function fileInputs(
  prefix: string,
  files: ReadonlyMap<string, string>,
): Promise<Readonly<Record<string, Uint8Array>>> {
  const entries = await Promise.all(
    [...files].map(async ([name, path]) => [`${prefix}/${name}`, await readFile(path)] as const),
  );
  return Object.fromEntries(entries);
}
