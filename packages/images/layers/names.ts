import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { quoted } from '../tar/reader.ts';

/**
 * The components of a member's name: relative to the root whether or not it begins with a slash, `.` and empty ones
 * left out. The root itself is the empty list.
 * @throws AenvError `image_invalid` for `..`, which no layer needs
 */
export function splitName(name: string): string[] {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw new AenvError('image_invalid', `layer entry ${quoted(name)} points out of the image`);
  return parts;
}

export type Marker =
  /** hides what lower layers have under this name */
  | { readonly kind: 'whiteout'; readonly target: string }
  /** hides all that lower layers have in this folder */
  | { readonly kind: 'opaque' }
  /** bookkeeping of AUFS, no part of the file system */
  | { readonly kind: 'ignored' };

/**
 * Whether a name is one of the markers of the OCI image specification ("Whiteouts"). The type of the member does not
 * matter: AUFS stores them as hard links.
 * @throws AenvError `image_invalid` for markers that name nothing
 */
export function markerOf(parts: readonly string[]): Marker | undefined {
  if (!parts.some((part) => part.startsWith('.wh.'))) return undefined;
  const name = parts.at(-1) ?? '';
  const folders = parts.slice(0, -1);
  const hidden = parts.some((part) => part.startsWith('.wh..wh.') && part !== '.wh..wh..opq');
  if (hidden) return { kind: 'ignored' };
  const target = name.slice('.wh.'.length);
  const misplaced = folders.some((part) => part.startsWith('.wh.')) || !name.startsWith('.wh.');
  if (misplaced || ['', '.', '..'].includes(target)) {
    throw new AenvError('image_invalid', `layer entry ${quoted(parts.join('/'))} is a whiteout of nothing`);
  }
  return name === '.wh..wh..opq' ? { kind: 'opaque' } : { kind: 'whiteout', target };
}
