import type { RemovedAsset } from '../assets/collect/collect.ts';
import type { GcReport } from '../snapshots/contract.ts';

/** What is kept on this host and why, and getting rid of what nobody needs. */
export interface StorageService {
  /** Images that are here, those of templates of the product included. */
  images(): Promise<readonly ImageInfo[]>;
  /**
   * Removes an image with the layers that nobody else needs.
   * @param reference digest, the beginning of one (6 digits or more), or name
   * @throws AenvError `image_not_found`; `image_in_use` naming who uses it; `storage_busy`, `storage_unknown`
   */
  removeImage(reference: string): Promise<Collected>;
  /** Removes all images that nobody uses, and layers of no image. @throws AenvError `storage_busy`, `storage_unknown` */
  collectImages(): Promise<Collected>;
  /**
   * Removes what nobody needs: assets, memory of snapshots, what was made for sandboxes that booted an image.
   * @param options.all also what was used lately
   * @throws AenvError `storage_busy`, `storage_unknown`
   */
  collect(options?: { readonly all?: boolean }): Promise<Collected>;
}

export interface Collected {
  readonly removed: readonly RemovedAsset[];
  readonly freedBytes: number;
  /** captured machines that this home had taken over */
  readonly machines?: number;
  /** templates without a name, of sandboxes that booted an image */
  readonly templates?: number;
  readonly snapshots?: GcReport;
}

export interface ImageInfo {
  /** full names by which it was pulled; none for images of the product */
  readonly name: string;
  readonly digest: string;
  readonly diskSizeMb: number;
  readonly layers: number;
  /** what its layers occupy on this host */
  readonly bytes: number;
  /** of these, what no other image has */
  readonly uniqueBytes: number;
  /** of these, what other images have too */
  readonly sharedBytes: number;
  /** of layers that stay in a registry, as they are stored there */
  readonly remoteBytes: number;
  /** `template tools`, `snapshot s1`, … */
  readonly usedBy: readonly string[];
  /** absent for images of the product */
  readonly pulledAt?: Date;
}
