import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AssetCache } from '@aenv/guest/cache/asset-cache.ts';
import { digestInputs } from '@aenv/guest/cache/inputs.ts';
import { run } from '@aenv/platform/process/run.ts';

/** Paths of the static programs that the bench runs in guests, compiled from the sources beside this file. */
export interface GuestPrograms {
  readonly bareInit: string;
  readonly httpServer: string;
  readonly spawnLoop: string;
}

const NAMES = ['bare-init', 'http-server', 'spawn-loop'] as const;
const FLAGS = ['-static', '-O2', '-std=c11', '-Wall', '-Wextra', '-Werror', '-s'];

/** @throws AenvError `host_command_failed` with the compiler's messages */
export async function buildPrograms(cache: AssetCache, signal: AbortSignal): Promise<GuestPrograms> {
  const folder = import.meta.dirname;
  const sources = (await readdir(folder)).filter((name) => name.endsWith('.c'));
  const contents = await Promise.all(sources.map(async (name) => [name, await readFile(join(folder, name))] as const));
  const entry = await cache.get({
    kind: 'bench-guest',
    digest: digestInputs({ ...Object.fromEntries(contents), flags: FLAGS.join(' '), arch: process.arch }),
    files: Object.fromEntries(NAMES.map((name) => [name, 0o755])),
    async build(target) {
      for (const name of NAMES) {
        await run(['musl-gcc', ...FLAGS, '-o', join(target, name), join(folder, `${name}.c`)], { signal });
      }
    },
  });
  return {
    bareInit: join(entry, 'bare-init'),
    httpServer: join(entry, 'http-server'),
    spawnLoop: join(entry, 'spawn-loop'),
  };
}
