import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Descriptor } from './schemas.ts';

/**
 * `tar`: an archive of changes, compressed or not. `overlaybd`: a layer of blocks in a tar wrapper, used as it is (the
 * form of accelerated-container-image).
 */
export type LayerForm = 'tar' | 'overlaybd';

const OVERLAYBD = 'containerd.io/snapshot/overlaybd';

/**
 * Of what kind a layer of a manifest is. The media type is that of an archive in both cases; annotations tell.
 * @throws AenvError `image_invalid` for layers that cannot be used
 */
export function layerForm(layer: Descriptor): LayerForm {
  // Foreign layers are not in the registry; encrypted ones need a key.
  if (/\+encrypted$|foreign|nondistributable/.test(layer.mediaType)) {
    throw new AenvError('image_invalid', `layer ${layer.digest} has the unsupported type ${layer.mediaType}`);
  }
  const annotation = (name: string) => layer.annotations?.[`${OVERLAYBD}/${name}`];
  const digest = annotation('blob-digest');
  const size = annotation('blob-size');
  if (digest === undefined || size === undefined) return 'tar';
  const version = annotation('version') ?? '0.1.0';
  if (/turbo|fastoci/.test(version) || annotation('turbo-oci/target-digest') !== undefined) {
    throw new AenvError(
      'image_invalid',
      `layer ${layer.digest} is of the unsupported kind turboOCI (${version.slice(0, 80)})`,
      {
        remediation: 'Use the original image, or one that was converted to native overlaybd.',
      },
    );
  }
  const fileSystem = annotation('blob-fs-type') ?? 'ext4';
  if (fileSystem !== 'ext4' && fileSystem !== '') {
    throw new AenvError(
      'image_invalid',
      `layer ${layer.digest} has the unsupported file system ${fileSystem.slice(0, 80)}`,
    );
  }
  if (digest !== layer.digest || size !== String(layer.size)) {
    throw new AenvError('image_invalid', `layer ${layer.digest} is annotated with another digest or size than it has`);
  }
  return 'overlaybd';
}
