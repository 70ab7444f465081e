import type { OciImage, OciLayer } from '../oci/find-image.ts';

/** A blob of a registry, as it can be written down and found again later. */
export interface RemoteBlob {
  /** as `RegistryReference` has it */
  readonly host: string;
  readonly repository: string;
  readonly digest: string;
  /** bytes */
  readonly size: number;
}

export interface ResolvedLayer extends OciLayer {
  /** where it can be read in parts; absent for layers that do not come from a registry */
  readonly remote?: RemoteBlob;
}

/** An image whose documents are here and verified; its layers are not fetched yet. */
export interface ResolvedImage extends OciImage {
  /** the full name with the digest of the manifest; the path for files of this host */
  readonly name: string;
  readonly layers: readonly ResolvedLayer[];
}
