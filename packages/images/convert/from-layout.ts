import { type ResolveOptions, readOciLayout } from '../oci/layout.ts';
import { type ConvertedImage, type ConvertOptions, convertImage } from './convert.ts';

/** The disk of an image of a layout folder. */
export interface DiskImage extends ConvertedImage {
  /** digest of the image's manifest */
  readonly digest: string;
}

/**
 * Converts the image of an OCI image layout; the second call only looks.
 * @throws AenvError as `convertImage`; `image_invalid` for an image whose layers are blocks already
 */
export async function convertLayout(layoutDir: string, options: ConvertOptions & ResolveOptions): Promise<DiskImage> {
  const image = await readOciLayout(layoutDir, options);
  const converted = await convertImage(image, options);
  return { ...converted, digest: image.digest };
}
