import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { sealJson, unsealJson } from '@aenv/platform/files/sealed-json.ts';
import { z } from 'zod';
import { isCode } from '../errors/is-code.ts';

/** Names in the folder of a converted layer. */
export const LAYER_FILE = 'overlaybd.commit';
export const RECORD_FILE = 'layer.json';
export const MODEL_FILE = 'model';

const recordSchema = z.strictObject({
  version: z.literal(1),
  chainId: z.string(),
  digest: z.string(),
  sizeBytes: z.number(),
  virtualSize: z.number(),
  uuid: z.string(),
  parentUuid: z.string().optional(),
  /** of a layer with the start state: who and where commands are by default */
  start: z.object({ user: z.string(), workdir: z.string() }).optional(),
});

type LayerRecord = z.infer<typeof recordSchema>;

/** A layer of a disk, in a file of this host. */
export interface ConvertedLayer extends Omit<LayerRecord, 'version'> {
  readonly path: string;
}

export async function writeRecord(folder: string, layer: Omit<ConvertedLayer, 'path'>): Promise<void> {
  const record: LayerRecord = { version: 1, ...layer };
  await writeDurable(join(folder, RECORD_FILE), sealJson(record));
}

/**
 * @returns undefined when there is no such layer
 * @throws AenvError `asset_failed` when the folder does not hold what it should
 */
export async function readRecord(folder: string): Promise<ConvertedLayer | undefined> {
  let text: string;
  try {
    text = await readFile(join(folder, RECORD_FILE), 'utf8');
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    if (await exists(folder)) throw damaged(folder);
    return undefined;
  }
  const record = recordSchema.safeParse(recordOf(text));
  const path = join(folder, LAYER_FILE);
  const size = await stat(path).then(
    (found) => found.size,
    () => -1,
  );
  if (!record.success || record.data.sizeBytes !== size) throw damaged(folder);
  const { version: _, ...rest } = record.data;
  return { ...rest, path };
}

function damaged(folder: string): AenvError {
  return new AenvError('asset_failed', `${folder} does not hold what it should`, {
    remediation: `Remove ${folder}; it is made again.`,
  });
}

/** Records of earlier versions have no checksum. */
function recordOf(text: string): unknown {
  const record = unsealJson(text);
  if (record !== undefined) return record;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
