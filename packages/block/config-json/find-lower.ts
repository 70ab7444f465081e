import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DeviceConfig, LowerConfig } from './device-config.ts';

/** Where the bytes of a layer are. */
export type LowerPlace =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'remote'; readonly url: string; readonly digest: string; readonly size?: number };

/** Names of a layer's file in its folder, in the order in which the reference looks for them. */
const NAMES = ['overlaybd.commit', '.commit', 'overlaybd.sealed'];

/**
 * Finds a layer: its file, a file in its folder, else the blob in the registry.
 * @throws AenvError `image_invalid` if it is nowhere
 */
export async function findLower(lower: LowerConfig, config: DeviceConfig): Promise<LowerPlace> {
  if (lower.file !== undefined) return { kind: 'file', path: lower.file };
  for (const name of lower.dir === undefined ? [] : NAMES) {
    const path = join(lower.dir ?? '', name);
    if (await isFile(path)) return { kind: 'file', path };
  }
  const url = lower.repoBlobUrl ?? config.repoBlobUrl;
  if (url === undefined || lower.digest === undefined) {
    throw new AenvError('image_invalid', `the layer ${lower.digest ?? lower.dir} is in no file and in no registry`);
  }
  const size = lower.size === undefined ? {} : { size: lower.size };
  return { kind: 'remote', url: `${url.replace(/\/+$/, '')}/${lower.digest}`, digest: lower.digest, ...size };
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
