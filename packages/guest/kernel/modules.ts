import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** A kernel module as it is loaded: the name with underscores, as the kernel writes it. */
export interface KernelModule {
  readonly name: string;
  readonly data: Buffer;
}

/**
 * The wanted modules and all that they need, in an order in which they can be loaded. Modules that are built into the
 * kernel are left out.
 * @param folder `lib/modules/RELEASE` of an unpacked kernel package
 * @throws AenvError `asset_failed` when one does not exist
 */
export async function modulesInOrder(folder: string, wanted: readonly string[]): Promise<KernelModule[]> {
  const builtin = new Set(
    (await readFile(join(folder, 'modules.builtin'), 'utf8')).split('\n').map((line) => moduleName(line)),
  );
  const files = new Map<string, string>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && entry.name.endsWith('.ko'))
      files.set(moduleName(entry.name), join(entry.parentPath, entry.name));
  }
  const order = new Map<string, KernelModule>();
  const visiting = new Set<string>();
  const visit = async (name: string): Promise<void> => {
    if (order.has(name) || builtin.has(name)) return;
    const file = files.get(name);
    if (file === undefined || visiting.has(name)) {
      throw new AenvError('asset_failed', `the kernel package has no usable module ${name}`);
    }
    visiting.add(name);
    const data = withoutSignature(await readFile(file));
    for (const dependency of moduleDependencies(data)) await visit(dependency);
    order.set(name, { name, data });
  };
  for (const name of wanted) await visit(moduleName(name));
  return [...order.values()];
}

function moduleName(file: string): string {
  return basename(file.trim(), '.ko').replaceAll('-', '_');
}

const SIGNATURE_MARK = '~Module signature appended~\n';

/**
 * The module without the signature at its end (the kernel's scripts/sign-file.c: signature, a structure of 12 bytes
 * whose last four are the signature's length, and a mark). The package's own signature was checked when it was fetched;
 * checking one for each module on every boot costs an emulated processor tens of milliseconds.
 */
export function withoutSignature(module: Buffer): Buffer {
  const mark = module.length - SIGNATURE_MARK.length;
  if (mark < 12 || module.toString('latin1', mark) !== SIGNATURE_MARK) return module;
  const length = module.readUInt32BE(mark - 4);
  return length > mark - 12 ? module : module.subarray(0, mark - 12 - length);
}

/** The `depends=` entry of a module's `.modinfo` section, where all strings end with a zero byte. */
export function moduleDependencies(module: Buffer): string[] {
  const key = '\0depends=';
  const at = module.indexOf(key, 0, 'latin1');
  if (at < 0) return [];
  const text = module.toString('latin1', at + key.length, module.indexOf(0, at + key.length));
  return text
    .split(',')
    .filter((name) => /^[\w-]+$/.test(name))
    .map((name) => name.replaceAll('-', '_'));
}
