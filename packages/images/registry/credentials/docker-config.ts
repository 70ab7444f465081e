import { z } from 'zod';
import { normalHost } from '../../reference/reference.ts';
import type { Credentials } from './contract.ts';

const entrySchema = z.object({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
  registrytoken: z.string().optional(),
});

/** Docker's config.json as far as it is about credentials; other members are ignored. */
export const dockerConfigSchema = z.object({
  auths: z.record(z.string(), entrySchema.nullish()).nullish(),
  credsStore: z.string().nullish(),
  credHelpers: z.record(z.string(), z.string()).nullish(),
});

export type DockerConfig = z.infer<typeof dockerConfigSchema>;

/** The name that Docker knows a registry by, which for Docker Hub is the URL of its first version. */
export function serverName(host: string): string {
  return host === 'docker.io' ? 'https://index.docker.io/v1/' : host;
}

/**
 * The member for a repository: a key is a host, maybe as URL (`https://index.docker.io/v1/`), maybe with the begin of a
 * repository (containers-auth.json(5)), of which the longest wins.
 */
export function entryFor<T>(
  members: Readonly<Record<string, T>> | null | undefined,
  host: string,
  repository: string,
): T | undefined {
  let best: T | undefined;
  let length = -1;
  for (const [key, value] of Object.entries(members ?? {})) {
    const prefix = prefixOf(key, host);
    if (prefix === undefined || prefix.length <= length) continue;
    if (prefix !== '' && repository !== prefix && !repository.startsWith(`${prefix}/`)) continue;
    best = value;
    length = prefix.length;
  }
  return best;
}

/** What follows the host in a key, or undefined when the key is for another host. */
function prefixOf(key: string, host: string): string | undefined {
  const isUrl = /^https?:\/\//.test(key);
  const [name = '', ...path] = key.replace(/^https?:\/\//, '').split('/');
  try {
    if (normalHost(name) !== host) return undefined;
  } catch {
    return undefined;
  }
  return isUrl ? '' : path.join('/').replace(/^v[12]$|\/+$/, '');
}

/** The credentials of a member of `auths`. */
export function credentialsOf(entry: z.infer<typeof entrySchema>): Credentials | undefined {
  if (entry.identitytoken !== undefined && entry.identitytoken !== '') {
    return { kind: 'identity-token', token: entry.identitytoken };
  }
  if (entry.registrytoken !== undefined && entry.registrytoken !== '') {
    return { kind: 'registry-token', token: entry.registrytoken };
  }
  if (entry.auth !== undefined && entry.auth !== '') {
    const text = Buffer.from(entry.auth, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    // Docker pads the password with zero bytes.
    if (colon > 0) return password(text.slice(0, colon), text.slice(colon + 1).replace(/\0+$/, ''));
  }
  if (entry.username !== undefined && entry.username !== '') return password(entry.username, entry.password ?? '');
  return undefined;
}

function password(username: string, secret: string): Credentials {
  return { kind: 'password', username, password: secret };
}
