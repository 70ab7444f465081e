import { join } from 'node:path';

/** Where in the folder of assets what is kept. */
export interface AssetPlaces {
  readonly root: string;
  readonly layers: string;
  readonly machines: string;
  readonly guest: string;
  /** names of images, a file each */
  readonly images: string;
  /** what each home refers to, a file each */
  readonly homes: string;
  /** packages of Debian as they were fetched */
  readonly packages: string;
  /** what is being removed */
  readonly trash: string;
  /** held by many who use assets, or alone by who collects them */
  readonly lock: string;
  /** folders of what images and templates of the product were made from; the last one of a version that is no more */
  readonly sources: readonly string[];
}

export function assetPlaces(root: string): AssetPlaces {
  return {
    root,
    layers: join(root, 'layers'),
    machines: join(root, 'machines'),
    guest: join(root, 'guest'),
    images: join(root, 'images'),
    homes: join(root, 'homes'),
    packages: join(root, 'apt', 'debs'),
    trash: join(root, '.trash'),
    lock: join(root, 'collect.lock'),
    sources: ['base-image', 'builtin-images', 'builtin-layers', 'rootfs'].map((name) => join(root, name)),
  };
}
