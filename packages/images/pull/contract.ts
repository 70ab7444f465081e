import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { LayerLimits } from '../ext4/apply/limits.ts';
import type { RemoteLayers } from '../lazy/remote-layers.ts';
import type { ImageConfig } from '../oci/image-config.ts';
import type { RemoteBlob } from '../resolve/contract.ts';
import type { ResolveImageOptions } from '../resolve/resolve-image.ts';
import type { ImageStart } from '../start-state/start.ts';

export interface PullOptions extends ResolveImageOptions {
  /** folder of layers in the form of blocks, shared by all images: see `convertImage` */
  readonly layersDir: string;
  /** folder for what is fetched ahead; it is made, and its content is not kept */
  readonly spoolDir: string;
  /** bytes that may be fetched ahead; default 4 GiB */
  readonly spoolBytes?: number;
  /** layers that are fetched at the same time; default 3 */
  readonly atOnce?: number;
  /** bytes of the disk: see `convertImage`; an image that is block layers has a size of its own, and no other one */
  readonly sizeBytes?: number;
  /** whether the image gets the start state; default true */
  readonly startState?: boolean;
  readonly limits?: LayerLimits;
  /** where layers that are block layers already are read from on demand; absent: they are fetched whole */
  readonly remoteLayers?: RemoteLayers;
  readonly log: Logger;
  readonly onProgress?: (progress: PullProgress) => void;
}

export type PullProgress =
  | { readonly phase: 'resolving'; readonly name: string }
  | {
      readonly phase: 'layers';
      /** layer that is being taken over, from 1; one more than there are for the start state */
      readonly layer: number;
      readonly layers: number;
      /** bytes of stored layers that have been fetched in this pull */
      readonly fetchedBytes: number;
      /** of those that are done, known from before included */
      readonly doneBytes: number;
      readonly totalBytes: number;
    };

/** A layer of a disk: on this host, or read from a registry on demand. */
export type PulledLayer =
  | { readonly kind: 'file'; readonly digest: string; readonly sizeBytes: number; readonly path: string }
  | { readonly kind: 'remote'; readonly digest: string; readonly sizeBytes: number; readonly remote: RemoteBlob };

/** An image as the disk that sandboxes start from. */
export interface PulledImage {
  /** the full name with the digest */
  readonly name: string;
  /** of the manifest */
  readonly digest: string;
  readonly config: ImageConfig;
  /** bottom first; the topmost one holds the start state, if it was asked for, and is a file of this host */
  readonly layers: readonly PulledLayer[];
  /** bytes of the disk */
  readonly sizeBytes: number;
  readonly start: ImageStart;
}
