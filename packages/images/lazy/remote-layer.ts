import type { RemoteLayer } from '@aenv/block/contract.ts';
import { z } from 'zod';
import type { RemoteBlob } from '../resolve/contract.ts';

/** What the block room keeps of a layer of a registry in the record of a disk. */
export const RemoteSource = z.object({
  host: z.string(),
  repository: z.string(),
  digest: z.string(),
  size: z.int().min(0),
});

/** A layer of a registry, as the block room keeps it in the record of a disk. */
export function remoteLayerOf({ host, repository, digest, size }: RemoteBlob): RemoteLayer {
  return { key: digest, source: { host, repository, digest, size } };
}
