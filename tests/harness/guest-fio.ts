import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { withoutLibraries } from './without-libraries.ts';

/** Where it is in the guest. */
const FOLDER = 'opt/fio';

/** Of the dozens of libraries of fio's drivers, tens of MB, those that files need. */
const KEPT = /^lib(aio|numa|z|m)\.so/;

/**
 * fio(1) as this host has it, without its drivers for remote storage, with the other libraries and the loader for them, so
 * that a guest needs nothing.
 * @returns a tar.gz to be unpacked at the root of the guest, and what to call there, arguments to follow
 */
export async function guestFio(): Promise<{ readonly archive: Buffer; readonly command: string }> {
  await installPackages(['fio'], { log: silentLogger });
  const folder = await mkdtemp(join(tmpdir(), 'aenv-fio-'));
  try {
    const fio = join(folder, 'fio');
    const program = withoutLibraries(await readFile('/usr/bin/fio'), (name) => KEPT.test(name));
    await writeFile(fio, program, { mode: 0o755 });
    const { stdout } = await run(['ldd', fio]);
    const files = [...stdout.matchAll(/(\/\S+) \(0x/g)].flatMap(([, path]) => path ?? []);
    const loader = files.map((path) => basename(path)).find((name) => name.startsWith('ld-linux'));
    if (loader === undefined) throw new Error(`no loader in:\n${stdout}`);
    const archive = join(folder, 'fio.tgz');
    const asOneFolder = ['--dereference', `--transform=s,.*/,${FOLDER}/,`, '--absolute-names'];
    await run(['tar', '--create', '--gzip', `--file=${archive}`, ...asOneFolder, fio, ...files]);
    const command = `/${FOLDER}/${loader} --library-path /${FOLDER} /${FOLDER}/fio`;
    return { archive: await readFile(archive), command };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
