/** Paths in the folder of assets that what is being made will refer to. Durable when it resolves. */
export type Claim = (paths: readonly string[]) => Promise<void>;

/** The folder of assets, as those see it who use what is in it and must not lose it in between. */
export interface AssetUses {
  /**
   * Does something with assets while none of them is collected, however little anybody refers to them. What is made is
   * claimed before it is written down that somebody refers to it.
   */
  during<T>(work: (claim: Claim) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Tells other processes what this home refers to now. */
  refresh(): Promise<void>;
}

/** What the folder of assets holds, by its subfolders. */
export type AssetKind =
  /** layers of disks, converted or fetched, by the key of what they were made of */
  | 'layer'
  /** captured machines of templates */
  | 'machine'
  /** kernels, initramfs, tools drives and the programs in them */
  | 'guest'
  /** names of images with their layers */
  | 'image'
  /** a QEMU, unpacked beside the host's packages */
  | 'vmm'
  /** what images and templates of the product were made from */
  | 'source';

/** A file or folder that comes and goes as a whole. */
export interface AssetEntry {
  readonly kind: AssetKind;
  readonly path: string;
  /** when it was last made, or found and taken, in `ms` since the epoch */
  readonly usedAt: number;
}
