import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Reach, Transport } from './http/transport.ts';
import type { RegistrySettings } from './settings.ts';

/** Where a registry really is, and what may be done on its behalf. */
export interface Place {
  /** ends with a slash */
  readonly base: URL;
  readonly reach: Reach;
}

const PROBE_MS = 15_000;

/**
 * Finds a registry. Plain HTTP is tried only for a host that is configured as insecure, and only when it speaks no TLS.
 * A link-local host is refused unless the configuration names it.
 * @throws AenvError `registry_address_refused`, `registry_unavailable`
 */
export async function locate(transport: Transport, settings: RegistrySettings, host: string): Promise<Place> {
  // Docker Hub's name is not the one of its server.
  const secure = new URL(`https://${host === 'docker.io' ? 'registry-1.docker.io' : host}/`);
  const insecure = settings.insecure.has(host);
  const limit = await transport.depthOf(secure.hostname);
  if (limit === 'link-local' && !isConfigured(settings, host)) {
    throw new AenvError('registry_address_refused', `${host}: requests to this address are refused`);
  }
  const reach: Reach = { insecure, authority: settings.authorities.get(host), limit };
  if (!insecure) return { base: secure, reach };
  const plain = new URL(secure.href.replace(/^https/, 'http'));
  return { base: (await speaksTls(transport, secure, reach)) ? secure : plain, reach };
}

function isConfigured(settings: RegistrySettings, host: string): boolean {
  if (settings.insecure.has(host) || settings.authorities.has(host)) return true;
  return [...settings.mirrors.values()].flat().some((mirror) => mirror.host === host);
}

async function speaksTls(transport: Transport, base: URL, reach: Reach): Promise<boolean> {
  try {
    const url = new URL('v2/', base);
    (await transport.send({ url, signal: AbortSignal.timeout(PROBE_MS) }, reach)).discard();
    return true;
  } catch {
    return false;
  }
}
