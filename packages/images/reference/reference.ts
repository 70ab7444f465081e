import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { parseDigest } from '../oci/digest.ts';

/** An image in a registry. At least one of `tag` and `digest` is there; a digest wins over a tag. */
export interface RegistryReference {
  /** as people write it, lower case, with a port where it is not the usual one: `docker.io`, `localhost:5000` */
  readonly host: string;
  /** `library/debian` */
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
}

const DEFAULT_TAG = 'latest';
/** Hosts that are other names of Docker Hub. */
const DOCKER_HUB = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com']);

const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST = new RegExp(`^(?:${LABEL}(?:\\.${LABEL})*|\\[[0-9a-fA-F:.]+\\])(?::\\d{1,5})?$`);
const PATH_PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
/** Of host and repository together, as the distribution project has it. */
const MAX_NAME = 255;

interface NameParts {
  readonly host: string | undefined;
  readonly path: string;
  readonly tag?: string;
  readonly digest?: string;
}

/**
 * The images that a name may stand for, to be tried in this order. The grammar is that of the distribution project
 * (package `reference`): the first part is a host if it has a dot, a colon or an upper case letter, or is `localhost`. A
 * name without a host is looked for in each of `search`; one-part names of Docker Hub are in `library/`. Without tag and
 * digest the tag is `latest`.
 * @param search hosts, for example `['docker.io', 'ghcr.io']`
 * @throws AenvError `image_reference_invalid`
 */
export function parseReference(text: string, search: readonly string[]): readonly RegistryReference[] {
  const parts = split(text);
  if (parts.host !== undefined) return [complete(text, parts.host, parts)];
  if (search.length === 0) {
    throw invalid(text, 'it has no host, and `registry.search` is empty', 'Write the host too: HOST/NAME:TAG.');
  }
  return search.map((host) => complete(text, host, parts));
}

/** @throws AenvError `image_reference_invalid` for what is no host name, with an optional port */
export function normalHost(host: string): string {
  const port = /:(\d+)$/.exec(host)?.[1];
  if (!HOST.test(host) || host.length > MAX_NAME || (port !== undefined && Number(port) > 65535)) {
    throw invalid(host, 'it is no host name');
  }
  const lower = host.toLowerCase();
  return DOCKER_HUB.has(lower) ? 'docker.io' : lower;
}

/** The full form, which names the same image everywhere. */
export function formatReference(reference: RegistryReference): string {
  const tag = reference.tag === undefined ? '' : `:${reference.tag}`;
  const digest = reference.digest === undefined ? '' : `@${reference.digest}`;
  return `${reference.host}/${reference.repository}${tag}${digest}`;
}

function split(text: string): NameParts {
  if (text.length > 1024) throw invalid(text, 'it is too long');
  const at = text.indexOf('@');
  const digest = at === -1 ? undefined : text.slice(at + 1);
  if (digest !== undefined && parseDigest(digest) === undefined) throw invalid(text, 'what follows the @ is no digest');
  const rest = at === -1 ? text : text.slice(0, at);
  const colon = rest.lastIndexOf(':');
  const hasTag = colon > rest.lastIndexOf('/');
  const tag = hasTag ? rest.slice(colon + 1) : undefined;
  if (tag !== undefined && !TAG.test(tag)) throw invalid(text, 'what follows the colon is no tag');
  const name = hasTag ? rest.slice(0, colon) : rest;
  const slash = name.indexOf('/');
  const first = slash === -1 ? '' : name.slice(0, slash);
  const isHost = /[.:A-Z]/.test(first) || first === 'localhost';
  return {
    host: isHost ? first : undefined,
    path: isHost ? name.slice(slash + 1) : name,
    ...(tag === undefined ? {} : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

function complete(text: string, name: string, parts: NameParts): RegistryReference {
  const host = normalHost(name);
  const path = host === 'docker.io' && !parts.path.includes('/') ? `library/${parts.path}` : parts.path;
  const badPart = path.split('/').find((part) => !PATH_PART.test(part));
  if (badPart !== undefined) {
    const upper = /[A-Z]/.test(badPart) ? ', names are in lower case' : '';
    throw invalid(text, `${JSON.stringify(badPart.slice(0, 80))} is no part of a name${upper}`);
  }
  if (host.length + path.length + 1 > MAX_NAME) throw invalid(text, 'it is too long');
  const tag = parts.tag ?? (parts.digest === undefined ? DEFAULT_TAG : undefined);
  return {
    host,
    repository: path,
    ...(tag === undefined ? {} : { tag }),
    ...(parts.digest === undefined ? {} : { digest: parts.digest }),
  };
}

function invalid(text: string, why: string, remediation?: string): AenvError {
  const message = `not the name of an image: ${JSON.stringify(text.slice(0, 200))}: ${why}`;
  return new AenvError('image_reference_invalid', message, remediation === undefined ? {} : { remediation });
}
