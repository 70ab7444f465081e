import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { parse, TomlError } from 'smol-toml';
import { type ConfigKey, configKeys, snakeCase } from './keys.ts';
import { type Config, ConfigSchema } from './schema.ts';
import { suggest } from './suggest.ts';
import { fromText } from './values.ts';

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** path of the TOML file; default AENV_CONFIG, then `config.toml` in the home folder if it is there */
  readonly file?: string | undefined;
  /** values from the command line by key, for example `{'listen': '127.0.0.1:9000'}` */
  readonly flags?: Readonly<Record<string, string | undefined>>;
}

const PREFIX = 'AENV_';
/** More than there can be slots: a VM must not be the user that all disks belong to. */
const UIDS_OF_VMS = 65_536;

/** A value with the place that it came from, for messages. */
interface Setting {
  readonly value: unknown;
  readonly origin: string;
}

/**
 * The configuration: defaults, the TOML file over them, AENV_* variables over it, flags over all.
 * @throws AenvError `config_invalid`, naming the key and where it was set
 */
export function loadConfig(sources: ConfigSources): Config {
  const keys = configKeys();
  const settings = new Map<string, Setting>();
  readFile(sources, keys, settings);
  readEnv(sources.env, keys, settings);
  readFlags(sources.flags ?? {}, keys, settings);

  const parsed = ConfigSchema.safeParse(nest(keys, settings));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const members = issue?.path.filter((step) => typeof step === 'string') ?? [];
    const name = members.map((member) => snakeCase(String(member))).join('.');
    const origin = settings.get(name)?.origin ?? 'default';
    throw invalid(`${name} (${origin}): ${issue?.message ?? 'bad value'}`);
  }
  const config = parsed.data;
  if (config.network.slotsLow > config.network.slotsHigh) {
    throw invalid('network.slots_low: must not be above network.slots_high');
  }
  const { uidBase } = config.network;
  if (config.storage.uid >= uidBase && config.storage.uid < uidBase + UIDS_OF_VMS) {
    throw invalid('storage.uid: must not be among the uids of VM processes, which begin at network.uid_base');
  }
  const { cert, key } = config.tls;
  if ((cert === undefined) !== (key === undefined)) {
    throw invalid(
      `tls.${cert === undefined ? 'cert' : 'key'}: must be set together with tls.${cert === undefined ? 'key' : 'cert'}`,
    );
  }
  return { ...config, assets: config.assets ?? join(config.home, 'assets') };
}

function readFile(sources: ConfigSources, keys: readonly ConfigKey[], settings: Map<string, Setting>): void {
  const named = sources.file ?? (sources.env.AENV_CONFIG || undefined);
  const home = sources.flags?.home ?? (sources.env.AENV_HOME || undefined) ?? '/var/lib/aenv';
  const path = named ?? join(home, 'config.toml');
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const absent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (absent && named === undefined) return;
    throw invalid(`${path}: cannot be read${absent ? ', it does not exist' : ''}`, error);
  }
  try {
    flatten(parse(text), '', (name, value) => {
      requireKnown(name, keys, path);
      settings.set(name, { value, origin: path });
    });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const what = error.message.split('\n')[0]?.replace('Invalid TOML document: ', '');
    throw invalid(`${path}, line ${error.line}: ${what}`, error);
  }
}

/** Goes down into tables, so that `[limits]` with `max_sandboxes` is the key `limits.max_sandboxes`. */
function flatten(table: object, prefix: string, visit: (name: string, value: unknown) => void): void {
  for (const [member, value] of Object.entries(table)) {
    const name = `${prefix}${member}`;
    const isTable = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
    // An empty section is fine; a section of an unknown name is found through its members.
    if (isTable) flatten(value, `${name}.`, visit);
    else visit(name, value);
  }
}

function readEnv(env: ConfigSources['env'], keys: readonly ConfigKey[], settings: Map<string, Setting>): void {
  for (const key of keys) {
    const text = env[key.env];
    // An empty variable is how many service managers spell "not set".
    if (text === undefined || text === '') continue;
    settings.set(key.name, { value: fromText(text, key.kind), origin: `environment ${key.env}` });
  }
  // Other programs use this prefix too (Kubernetes names services so), hence only what is plainly meant is refused.
  const names = keys.map((key) => key.env.slice(PREFIX.length));
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith(PREFIX) || names.includes(variable.slice(PREFIX.length))) continue;
    const rest = variable.slice(PREFIX.length);
    const close = suggest(rest, names, Math.min(2, rest.length / 4));
    if (close !== undefined) throw invalid(`${variable} (environment): unknown key, did you mean ${PREFIX}${close}?`);
  }
}

function readFlags(
  flags: Readonly<Record<string, string | undefined>>,
  keys: readonly ConfigKey[],
  settings: Map<string, Setting>,
): void {
  for (const [name, text] of Object.entries(flags)) {
    if (text === undefined) continue;
    const key = requireKnown(name, keys, 'command line');
    settings.set(name, { value: fromText(text, key.kind), origin: 'command line' });
  }
}

function requireKnown(name: string, keys: readonly ConfigKey[], origin: string): ConfigKey {
  const key = keys.find((candidate) => candidate.name === name);
  if (key !== undefined) return key;
  const close = suggest(
    name,
    keys.map((candidate) => candidate.name),
  );
  throw invalid(`${name} (${origin}): unknown key${close === undefined ? '' : `, did you mean ${close}?`}`);
}

function nest(keys: readonly ConfigKey[], settings: ReadonlyMap<string, Setting>): object {
  const root: Record<string, unknown> = {};
  for (const { name, path } of keys) {
    const setting = settings.get(name);
    if (setting === undefined) continue;
    const [first = '', second] = path;
    if (second === undefined) root[first] = setting.value;
    else root[first] = { ...(root[first] as object | undefined), [second]: setting.value };
  }
  return root;
}

function invalid(message: string, cause?: unknown): AenvError {
  return new AenvError('config_invalid', `configuration: ${message}`, { cause });
}
