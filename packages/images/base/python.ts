import { lutimes, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@aenv/platform/process/run.ts';

const COMPILE_TIMEOUT_MS = 10 * 60_000;

/**
 * Compiles the Python modules below a folder of an image with the host's Python, which is that of the same Debian
 * release. (Compiled by another version they would be passed over.)
 * @param root where the image's `/` is
 * @param epoch seconds; the time that younger files will have in the image: a compiled module holds that of its source
 */
export async function compilePython(root: string, folder: string, epoch: number, signal?: AbortSignal): Promise<void> {
  await clampTimes(folder, epoch);
  await run(['/usr/bin/python3', '-m', 'compileall', '-q', '-j', '0', '-s', root, '-p', '/', folder], {
    // Packages bring files for other versions of Python, which do not compile; they are no error.
    okCodes: [0, 1],
    timeoutMs: COMPILE_TIMEOUT_MS,
    // With SOURCE_DATE_EPOCH set, modules would be checked by hashing their sources at every import.
    env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' },
    ...(signal === undefined ? {} : { signal }),
  });
}

async function clampTimes(folder: string, epoch: number): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && (await stat(path)).mtimeMs > epoch * 1000) await lutimes(path, epoch, epoch);
  }
}
