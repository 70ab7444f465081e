import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { normalHost } from '../reference/reference.ts';

/** How registries are reached, as the configuration has it. */
export interface RegistrySettings {
  /** hosts for names that have none */
  readonly search: readonly string[];
  /** hosts that images may come from; undefined: from all */
  readonly allowed: ReadonlySet<string> | undefined;
  /** hosts whose certificates are not looked at, and that may speak plain HTTP */
  readonly insecure: ReadonlySet<string>;
  /** by host: what is asked before it */
  readonly mirrors: ReadonlyMap<string, readonly Mirror[]>;
  /** by host: path of a PEM file with authorities, trusted beside those of the system */
  readonly authorities: ReadonlyMap<string, string>;
}

/** Another registry that has the same images, below a prefix or not. */
export interface Mirror {
  readonly host: string;
  /** empty, or `proxy/hub` */
  readonly prefix: string;
}

/** The section `registry` of the configuration, as text. */
export interface RegistryConfig {
  readonly search: readonly string[];
  readonly allowed?: readonly string[] | undefined;
  readonly insecure: readonly string[];
  /** `HOST=MIRROR[/PREFIX]`, several of one host in the order in which they are tried */
  readonly mirrors: readonly string[];
  /** `HOST=FILE` */
  readonly ca: readonly string[];
}

/** @throws AenvError `config_invalid`, naming the key and the entry */
export function registrySettings(config: RegistryConfig): RegistrySettings {
  const mirrors = new Map<string, Mirror[]>();
  for (const entry of config.mirrors) {
    const [host, target] = pair('mirrors', entry);
    const [, mirrorHost = '', prefix = ''] = /^([^/]+)(?:\/(.+))?$/.exec(target) ?? [];
    const list = mirrors.get(host) ?? [];
    list.push({ host: hostOf('mirrors', mirrorHost), prefix: prefixOf(entry, prefix) });
    mirrors.set(host, list);
  }
  return {
    search: config.search.map((host) => hostOf('search', host)),
    allowed: config.allowed === undefined ? undefined : new Set(config.allowed.map((host) => hostOf('allowed', host))),
    insecure: new Set(config.insecure.map((host) => hostOf('insecure', host))),
    mirrors,
    authorities: new Map(config.ca.map((entry) => pair('ca', entry))),
  };
}

function pair(key: string, entry: string): [string, string] {
  const equals = entry.indexOf('=');
  const value = entry.slice(equals + 1).trim();
  if (equals < 1 || value === '') throw invalid(key, entry, 'must have the form HOST=VALUE');
  return [hostOf(key, entry.slice(0, equals).trim()), value];
}

function prefixOf(entry: string, prefix: string): string {
  if (prefix === '' || /^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/.test(prefix)) return prefix;
  throw invalid('mirrors', entry, 'has a prefix that is no part of a name');
}

function hostOf(key: string, text: string): string {
  try {
    return normalHost(text);
  } catch (error) {
    throw invalid(key, text, 'is no host name, with or without :PORT', error);
  }
}

function invalid(key: string, entry: string, why: string, cause?: unknown): AenvError {
  return new AenvError('config_invalid', `configuration: registry.${key}: ${JSON.stringify(entry)} ${why}`, { cause });
}
