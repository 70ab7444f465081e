import { createHash } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { z } from 'zod';
import { assetFolder } from '../cache/asset-folder.ts';
import { compressLayer, type LayerBlob } from '../oci/write-layout.ts';

export interface LayerAssetOptions {
  /** content-addressed cache */
  readonly assetsDir: string;
  /** shown as progress */
  readonly title: string;
  /** everything that the layer is made of, as JSON */
  readonly inputs: unknown;
  /** seconds; no file of the layer is younger, so that equal inputs give equal layers */
  readonly epoch: number;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

const record = z.object({ version: z.literal(1), digest: z.string(), diffId: z.string(), size: z.number() });
/** Raise it when the same inputs would give another layer. */
const RECIPE = 1;
const TAR_TIMEOUT_MS = 10 * 60_000;

/**
 * A layer of an image, kept under a hash of its inputs.
 * @param fill puts the layer's files into an empty folder (0755); owners and modes go into the layer as they are
 */
export async function layerAsset(
  options: LayerAssetOptions,
  fill: (root: string, scratch: string) => Promise<void>,
): Promise<LayerBlob> {
  const { assetsDir, title, inputs, epoch, log, signal } = options;
  const key = createHash('sha256').update(JSON.stringify({ RECIPE, epoch, inputs })).digest('hex');
  const dir = await assetFolder(join(assetsDir, 'builtin-layers'), key, async (result, scratch) => {
    const started = performance.now();
    log.info(`making the layer ${title}`);
    const root = join(scratch, 'root');
    await mkdir(root, { mode: 0o755 });
    await fill(root, scratch);
    const archive = join(scratch, 'layer.tar');
    await pack(root, archive, epoch, signal);
    const { digest, diffId, size } = await compressLayer(result, archive, signal);
    const content: z.infer<typeof record> = { version: 1, digest, diffId, size };
    await writeDurable(join(result, 'layer.json'), JSON.stringify(content));
    await rm(root, { recursive: true, force: true });
    log.info(`layer ${title} made`, { ms: Math.round(performance.now() - started), bytes: size });
  });
  const { digest, diffId, size } = await readRecord(dir);
  return { dir, digest, diffId, size };
}

async function pack(root: string, archive: string, epoch: number, signal?: AbortSignal): Promise<void> {
  await run(
    [
      ...(['tar', '--create', '--file', archive, '--directory', root, '--format=posix', '--sort=name'] as const),
      ...['--numeric-owner', `--mtime=@${epoch}`, '--clamp-mtime', '--pax-option=delete=atime,delete=ctime', '.'],
    ],
    { timeoutMs: TAR_TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) },
  );
}

async function readRecord(dir: string): Promise<z.infer<typeof record>> {
  const path = join(dir, 'layer.json');
  try {
    return record.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    throw new AenvError('asset_failed', `${dir} does not hold what it should`, {
      remediation: `Remove ${dir}; it is made again.`,
      cause: error,
    });
  }
}
