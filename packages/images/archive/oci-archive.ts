import type { OciImage } from '../oci/find-image.ts';
import { type LayoutFiles, type ResolveOptions, readLayoutFiles } from '../oci/layout.ts';
import { TarFile } from './tar-file.ts';

/**
 * Finds the image for a platform in an archive of an OCI image layout: see `readOciLayout`.
 * @throws AenvError `image_invalid`, `image_platform_missing`
 */
export async function readOciArchive(path: string, options: ResolveOptions = {}): Promise<OciImage> {
  return readLayoutFiles(layoutIn(await TarFile.open(path, options.signal)), options);
}

function layoutIn(archive: TarFile): LayoutFiles {
  return {
    name: 'the archive',
    size: (path) => Promise.resolve(archive.size(path)),
    read: (path, signal) => archive.read(path, signal),
  };
}
