import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { hostCodename } from '@aenv/platform/debian/host.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { assetFolder } from '../cache/asset-folder.ts';
import { readOciLayout } from '../oci/layout.ts';
import { hostPlatform } from '../oci/platform.ts';
import { writeLayout } from '../oci/write-layout.ts';
import { readHostApt } from './host-apt.ts';
import { BASE_PACKAGES } from './packages.ts';

export interface BaseImageOptions {
  /** content-addressed cache */
  readonly assetsDir: string;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/** Raise it when something below changes that is no input of the hash. */
const RECIPE = 1;
/** Seconds; files of built-in images are not younger, so that equal packages give equal layers. */
export const EPOCH = Date.UTC(2026, 0, 1) / 1000;
const TIMEOUT_MS = 30 * 60_000;
const HOOKS = {
  extract: fileURLToPath(new URL('extract-hook.sh', import.meta.url)),
  customize: fileURLToPath(new URL('customize-hook.sh', import.meta.url)),
} as const;

/** How processes of built-in images start. */
export const CONFIG = {
  Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8'],
  User: 'user',
  WorkingDir: '/home/user',
  Cmd: ['/bin/bash'],
};

/**
 * mmdebstrap mounts file systems and starts package managers. In namespaces of its own all of that ends with the first
 * process, so that a cancelled run leaves neither mounts nor processes that write on into a folder being removed.
 */
const CONTAINED = ['unshare', '--mount-proc', '--pid', '--fork', '--kill-child'] as const;

/**
 * The `base` image as an OCI image layout, made from Debian's packages with mmdebstrap(1), from the mirrors and with the
 * keyrings of this host's apt. Kept under a hash of its inputs; the first time takes a minute or two. Needs root.
 *
 * Its account `user` comes with the import, as for every image.
 * @throws AenvError `host_unsupported` on other systems, `asset_failed` with mmdebstrap's last lines, `no_space`
 */
export async function ensureBaseImage(options: BaseImageOptions): Promise<{ layoutDir: string; digest: string }> {
  const codename = await hostCodename();
  const flags = [
    ...['--variant=minbase', '--mode=root', '--format=tar', `--include=${BASE_PACKAGES.join(',')}`],
    ...['APT::Install-Recommends "false";', 'Acquire::Languages "none";'].map((option) => `--aptopt=${option}`),
  ];
  const platform = hostPlatform();
  const hooks = await Promise.all(Object.values(HOOKS).map((path) => readFile(path, 'utf8')));
  // Which mirror the packages come from is no input: all of them have the same.
  const inputs = { RECIPE, EPOCH, CONFIG, codename, flags, platform, hooks };
  const key = createHash('sha256').update(JSON.stringify(inputs)).digest('hex');
  const layoutDir = await assetFolder(join(options.assetsDir, 'base-image'), key, async (result, scratch) => {
    const started = performance.now();
    options.log.info('making the base image from Debian packages, once', { suite: codename });
    const archive = join(scratch, 'base.tar');
    await bootstrap(codename, flags, archive, scratch, options);
    const created = new Date(EPOCH * 1000).toISOString();
    await writeLayout(result, { platform, archive, config: CONFIG, created }, options.signal);
    await rm(archive);
    options.log.info('base image made', { ms: Math.round(performance.now() - started) });
  });
  return { layoutDir, digest: (await readOciLayout(layoutDir)).digest };
}

async function bootstrap(
  codename: string,
  flags: readonly string[],
  archive: string,
  scratch: string,
  options: BaseImageOptions,
): Promise<void> {
  const apt = await readHostApt(options.signal);
  const settings = apt.settings.map((line) => `--aptopt=${line}`);
  const hooks = Object.entries(HOOKS).map(([name, path]) => `--${name}-hook=${path}`);
  const sources = join(scratch, 'base.sources');
  await writeFile(sources, apt.sources);
  try {
    await run([...CONTAINED, 'mmdebstrap', ...flags, ...settings, ...hooks, codename, archive, sources], {
      timeoutMs: TIMEOUT_MS,
      env: {
        ...process.env,
        ...apt.proxies,
        LC_ALL: 'C.UTF-8',
        SOURCE_DATE_EPOCH: String(EPOCH),
        // mmdebstrap unpacks there, and leaves its folder behind when it is killed
        TMPDIR: scratch,
      },
      onStderrLine: (line) => report(line, options.log),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  } catch (error) {
    if (!(error instanceof AenvError) || error.code !== 'host_command_failed') throw error;
    const code = /No space left on device/.test(error.message) ? 'no_space' : 'asset_failed';
    throw new AenvError(code, `base image: ${error.message}`, { cause: error });
  }
}

/** mmdebstrap's own steps (`I: ...`), not the bars that it draws. */
function report(line: string, log: Logger): void {
  const step = /^I: (?!riding|cleaning|removing|success|done)(.*)$/.exec(line.split('\r').at(-1) ?? '')?.[1];
  if (step !== undefined) log.info('base image', { step });
}
