import type { PulledImage } from '@aenv/images/pull/contract.ts';
import type { StartState, TemplateLayer, TemplateSource } from '../contract.ts';
import type { ImageBuild } from './contract.ts';

/** What a template takes over from an image. */
export interface ImageParts {
  readonly source: TemplateSource;
  readonly start: StartState;
  readonly diskSizeMb: number;
}

const MIB = 1024 * 1024;

/**
 * Disk, variables, user and working directory, and what the build asks for beside them. Entrypoint and command of the image are not run: a sandbox is a machine
 * with an agent in it, and what runs is up to its client.
 */
export function fromImage(
  { digest, layers, sizeBytes, start }: PulledImage,
  { startCmd, ready }: Pick<ImageBuild, 'startCmd' | 'ready'>,
): ImageParts {
  const { envVars, user, workdir } = start;
  const own = layers.map((layer): TemplateLayer => {
    if (layer.kind === 'file') return { kind: 'file', path: layer.path };
    const { host, repository, digest: blob, size } = layer.remote;
    return { kind: 'remote', host, repository, digest: blob, size };
  });
  return {
    source: { imageDigest: digest, layers: own },
    start: {
      ...{ envVars, user, workdir },
      ...(startCmd === undefined ? {} : { startCommand: { cmd: startCmd, user } }),
      ...(ready === undefined ? {} : { ready: ready.kind === 'http' ? ready : { ...ready, user } }),
    },
    diskSizeMb: Math.ceil(sizeBytes / MIB),
  };
}
