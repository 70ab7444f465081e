import type { StartPoint } from '../sandboxes/launch/launch.ts';
import type { Template } from './contract.ts';

/** What a sandbox of a template starts from: the machine that was captured when it was built, or else its disk. */
export function startPointOf({ source }: Pick<Template, 'source'>): StartPoint {
  if (source.checkpoint !== undefined) return { kind: 'checkpoint', id: source.checkpoint };
  return { kind: 'disk', disk: { kind: 'layers', layers: source.layers } };
}
