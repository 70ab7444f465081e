import type { RegistryClient } from '../registry/client.ts';
import type { RemoteBlob } from '../resolve/contract.ts';
import type { RangeOrigin } from './fetch/origin.ts';

/** A blob of a registry, read by range. */
export function registryOrigin(client: RegistryClient, remote: RemoteBlob): RangeOrigin {
  const { host, repository, digest, size } = remote;
  return {
    name: host,
    read: (target, offset, signal, onProgress) =>
      client.repository(host, repository).range({ digest, size }, target, offset, { signal, onProgress }),
  };
}
