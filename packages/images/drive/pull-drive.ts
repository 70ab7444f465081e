import type { PulledImage, PullOptions } from '../pull/contract.ts';
import { pullImage } from '../pull/pull-image.ts';
import { ensureLabelLayer } from './label-layer.ts';

export interface DriveOptions extends Omit<PullOptions, 'startState'> {
  /** label of the file system: how the guest finds the drive; at most 16 ASCII characters */
  readonly label: string;
}

/**
 * From the name of an image to the disk of an attached drive: what the image has, nothing added, under a label of its
 * own. Layers are shared with everything else that is made of the image.
 * @throws AenvError as `pullImage`; `image_invalid` for an image of blocks that are no ext4
 */
export async function pullDrive(name: string, { label, ...options }: DriveOptions): Promise<PulledImage> {
  const image = await pullImage(name, { ...options, startState: false });
  return { ...image, layers: [...image.layers, await ensureLabelLayer(image, label, options)] };
}
