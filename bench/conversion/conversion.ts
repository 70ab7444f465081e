import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBaseImage } from '@aenv/images/base/build.ts';
import { convertImage } from '@aenv/images/convert/convert.ts';
import { type OciImage, readOciLayout } from '@aenv/images/oci/layout.ts';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { loadConfig } from '../../packages/node/config/load.ts';
import type { Bench, Measurement } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { gzipLayout } from './gzip-layout.ts';

const ROUNDS = 7;
const DISK = 10 * 2 ** 30;
const TIMEOUT_MS = 5 * 60_000;

/** How long it takes from an image to a file system, beside the usual tools. */
export const conversion: Measurement = {
  name: 'convert',
  about: 'the base image to layers of blocks, over `umoci unpack` and `mke2fs -d`',
  limitMs: 15 * 60_000,
  async run(bench) {
    await installPackages(['umoci'], { log: silentLogger, signal: bench.signal });
    const top = await mkdtemp(join(tmpdir(), 'aenv-bench-convert-'));
    try {
      const image = await prepare(top, bench.signal);
      const { a, b } = await interleave(
        bench,
        bench.rounds(ROUNDS),
        () => ours(bench, image, top),
        () => theirs(bench, top),
        (own, other) => `converted ${own.toFixed(0)} ms, umoci and mke2fs ${other.toFixed(0)} ms`,
      );
      const note =
        'series in ms; one layer, gzip; the layers are on stable storage at the end, the other disk need not be';
      return [
        ratioRow('convert/over umoci unpack and mke2fs -d', { converted: a, tools: b }, { atMost: 0.8 }, { note }),
        seriesRow('convert/base image', a, 'ms'),
      ];
    } finally {
      await rm(top, { recursive: true, force: true });
    }
  },
};

/** The base image with a layer that umoci can read, which has no zstd. */
async function prepare(top: string, signal: AbortSignal): Promise<OciImage> {
  const { assets: assetsDir } = loadConfig({ env: process.env });
  const { layoutDir } = await ensureBaseImage({ assetsDir, log: silentLogger, signal });
  const target = join(top, 'layout');
  await gzipLayout(await readOciLayout(layoutDir), target, signal);
  return readOciLayout(target);
}

async function ours(bench: Bench, image: OciImage, top: string): Promise<number> {
  const layersDir = join(top, 'layers');
  const started = performance.now();
  await convertImage(image, { layersDir, sizeBytes: DISK, log: silentLogger, signal: bench.signal });
  const ms = performance.now() - started;
  await rm(layersDir, { recursive: true });
  return ms;
}

async function theirs({ signal }: Bench, top: string): Promise<number> {
  const [bundle, disk] = [join(top, 'bundle'), join(top, 'disk')];
  const options = { signal, timeoutMs: TIMEOUT_MS };
  const started = performance.now();
  await run(['umoci', 'unpack', '--image', `${join(top, 'layout')}:base`, bundle], options);
  {
    await using file = await open(disk, 'wx');
    await file.truncate(DISK);
  }
  await run(['mke2fs', '-q', '-F', '-t', 'ext4', '-d', join(bundle, 'rootfs'), disk], options);
  const ms = performance.now() - started;
  await rm(bundle, { recursive: true });
  await rm(disk);
  return ms;
}
