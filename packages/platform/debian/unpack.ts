import { mkdir } from 'node:fs/promises';
import { run } from '../process/run.ts';

/** Unpacks the files of a package into a folder, which is made; no script of the package runs (dpkg-deb(1)). */
export async function unpackDeb(deb: string, dir: string, signal?: AbortSignal): Promise<void> {
  await mkdir(dir, { recursive: true });
  await run(['dpkg-deb', '--extract', deb, dir], {
    timeoutMs: 10 * 60 * 1000,
    ...(signal === undefined ? {} : { signal }),
  });
}
