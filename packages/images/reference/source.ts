import { isAbsolute, normalize } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { parseReference, type RegistryReference } from './reference.ts';

/** Where an image comes from, as a name says it. */
export type ImageSource =
  | { readonly kind: 'registry'; readonly candidates: readonly RegistryReference[] }
  | {
      readonly kind: 'oci-layout' | 'oci-archive' | 'docker-archive';
      readonly path: string;
      /** `org.opencontainers.image.ref.name`, or NAME:TAG in an archive of Docker; absent: the only one, or the first */
      readonly ref?: string;
    };

const LOCAL: Readonly<Record<string, 'oci-layout' | 'oci-archive' | 'docker-archive'>> = {
  oci: 'oci-layout',
  'oci-archive': 'oci-archive',
  'docker-archive': 'docker-archive',
};

export interface SourceOptions {
  /** hosts for names that have none */
  readonly search: readonly string[];
  /** whether names may lead to files of this host; only for callers who may read every file that this process may read */
  readonly allowLocal?: boolean;
}

/**
 * `oci:DIR[:REF]`, `oci-archive:FILE[:REF]`, `docker-archive:FILE[:REF]` with absolute paths (containers-transports(5)),
 * `docker://NAME`, or a name as `parseReference` takes it.
 * @throws AenvError `image_reference_invalid`
 */
export function parseSource(text: string, options: SourceOptions): ImageSource {
  const colon = text.indexOf(':');
  const scheme = colon === -1 ? '' : text.slice(0, colon);
  const kind = LOCAL[scheme];
  // `oci:latest` is an image named oci; a path begins with a slash here.
  if (kind === undefined || !text.slice(colon + 1).includes('/')) {
    const name = text.startsWith('docker://') ? text.slice('docker://'.length) : text;
    return { kind: 'registry', candidates: parseReference(name, options.search) };
  }
  if (options.allowLocal !== true) {
    throw invalid(text, 'files of the host are not read for this request', 'Push the image to a registry.');
  }
  const rest = text.slice(colon + 1);
  // A reference may hold colons and slashes (`NAME:TAG`, `HOST/NAME:TAG`), a path rarely does: the first colon parts them.
  const end = rest.indexOf(':');
  const path = end === -1 ? rest : rest.slice(0, end);
  const ref = end === -1 ? undefined : rest.slice(end + 1);
  if (!isAbsolute(path) || path.includes('\0')) throw invalid(text, 'the path must be absolute');
  if (ref === '') throw invalid(text, 'nothing follows the second colon');
  return { kind, path: normalize(path), ...(ref === undefined ? {} : { ref }) };
}

function invalid(text: string, why: string, remediation?: string): AenvError {
  const message = `not the name of an image: ${JSON.stringify(text.slice(0, 200))}: ${why}`;
  return new AenvError('image_reference_invalid', message, remediation === undefined ? {} : { remediation });
}
