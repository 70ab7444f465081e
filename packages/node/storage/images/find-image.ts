import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ListedImage } from './image-list.ts';

const HEX = /^[0-9a-f]{6,64}$/;

/**
 * The images that a digest, the beginning of one, or a name means: one, with disks of whatever sizes.
 * @throws AenvError `image_not_found`; `invalid_request` when it is the beginning of several
 */
export function findImage(images: readonly ListedImage[], reference: string): readonly ListedImage[] {
  const text = reference.trim();
  const hex = text.replace(/^sha256:/, '').toLowerCase();
  const found = images.filter(({ name, digest }) => {
    const byDigest = HEX.test(hex) && digest.startsWith(`sha256:${hex}`);
    return byDigest || (name !== '' && (name === text || name.split('@')[0] === text || bare(name) === bare(text)));
  });
  const digests = new Set(found.map(({ digest }) => digest));
  if (digests.size === 0) {
    throw new AenvError('image_not_found', `no image '${text.slice(0, 256)}' is here`, {
      remediation: 'List images with `aenv image ls`; give a digest, 6 digits of one or more, or a name.',
    });
  }
  if (digests.size > 1) {
    throw new AenvError('invalid_request', `'${text.slice(0, 256)}' means several images: ${[...digests].join(', ')}`, {
      remediation: 'Give more of the digest.',
    });
  }
  return found;
}

/** A name without digest and tag: what an image was pulled by is kept with its digest. */
function bare(name: string): string {
  return (name.split('@')[0] ?? '').replace(/:[^:/]*$/, '');
}
