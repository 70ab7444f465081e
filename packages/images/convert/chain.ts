import { createHash } from 'node:crypto';
import { FEATURES } from '../ext4/format/superblock.ts';

/** Raise it when the writer would give other bytes for the same layers. */
const FORMATTER = 1;

/** Identity of a layer with all layers below it (OCI image configuration, "Layer ChainID"). */
export function chainIdOf(below: string | undefined, diffId: string): string {
  return below === undefined ? diffId : sha256(`${below} ${diffId}`);
}

/** Name of a converted layer: everything that its bytes depend on. */
export function layerKey(chainId: string, sizeBytes: number): string {
  return sha256(`aenv-ext4-${FORMATTER}\n${FEATURES}\n${sizeBytes}\n${chainId}`).slice('sha256:'.length);
}

export function sha256(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
