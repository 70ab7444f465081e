import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { TarEntry } from '../../tar/entry.ts';
import type { Totals } from '../model/tree.ts';

/** What all layers of an image may hold together. */
export interface LayerLimits {
  readonly entries: number;
  readonly devices: number;
  /** bytes of file content, holes included */
  readonly bytes: number;
  /** bytes of names, link targets and attributes, which are kept in memory */
  readonly metadataBytes: number;
}

export const DEFAULT_LIMITS: LayerLimits = {
  entries: 2_000_000,
  devices: 4096,
  bytes: 256 * 2 ** 30,
  metadataBytes: 256 * 2 ** 20,
};

/** @throws AenvError `image_invalid` when a member is one too many */
export function count(totals: Totals, entry: TarEntry, limits: LayerLimits): void {
  totals.entries++;
  if (entry.type === 'character-device' || entry.type === 'block-device' || entry.type === 'fifo') totals.devices++;
  totals.bytes += entry.size;
  totals.metadataBytes += entry.name.length + entry.linkName.length;
  for (const [name, value] of entry.xattrs) totals.metadataBytes += name.length + value.length;
  const over =
    (totals.entries > limits.entries && `more than ${limits.entries} entries`) ||
    (totals.devices > limits.devices && `more than ${limits.devices} device nodes`) ||
    (totals.bytes > limits.bytes && `more than ${limits.bytes} bytes of files`) ||
    (totals.metadataBytes > limits.metadataBytes && `more than ${limits.metadataBytes} bytes of names and attributes`);
  if (over) throw new AenvError('image_invalid', `the image holds ${over}`);
}
