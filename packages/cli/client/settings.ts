import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../output/cli-error.ts';
import { readCredentials } from './credentials.ts';

/** Where the server is and who we are. */
export interface Settings {
  /** base URL without a slash at the end */
  readonly url: string;
  readonly apiKey: string;
}

export interface SettingsFlags {
  readonly url?: string;
  readonly apiKey?: string;
}

/**
 * Flags, then AENV_URL and AENV_API_KEY, then the credentials file, then the daemon of this host (its key file is
 * readable to root only). A stored key is used only for the server that it was stored for.
 */
export async function resolveSettings(flags: SettingsFlags, env: NodeJS.ProcessEnv): Promise<Settings> {
  const stored = await readCredentials(credentialsPath(env));
  const given = flags.url ?? nonEmpty(env.AENV_URL);
  const url = trimUrl(given ?? stored?.url ?? (await localDaemonUrl(env)) ?? 'http://127.0.0.1:8000');
  const fromFile = stored !== undefined && trimUrl(stored.url) === url ? stored.apiKey : undefined;
  const apiKey =
    flags.apiKey ?? nonEmpty(env.AENV_API_KEY) ?? fromFile ?? (isLoopback(url) ? await localKey(env) : undefined);
  if (apiKey === undefined || apiKey === '') {
    throw new CliError(`no API key for ${url}`, 'Run `aenv auth`, or set AENV_API_KEY.');
  }
  return { url, apiKey };
}

/** An empty variable counts as not set. */
function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** The file that `aenv auth` writes. */
export function credentialsPath(env: NodeJS.ProcessEnv): string {
  return env.AENV_CREDENTIALS ?? join(env.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'aenv', 'credentials.json');
}

/** Checks the form of a server address and removes slashes at its end. */
export function trimUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new CliError(`not a server address: ${text}`, 'Use a URL such as http://127.0.0.1:8000.');
  }
  return text.replace(/\/+$/, '');
}

async function localDaemonUrl(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  try {
    const state: unknown = JSON.parse(await readFile(join(env.AENV_RUNTIME ?? '/run/aenv', 'daemon.json'), 'utf8'));
    if (typeof state === 'object' && state !== null && 'url' in state && typeof state.url === 'string')
      return state.url;
  } catch {
    // No daemon on this host, or not ours to see.
  }
  return undefined;
}

async function localKey(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  try {
    return (await readFile(join(env.AENV_HOME ?? '/var/lib/aenv', 'secrets', 'api-key'), 'utf8')).trim();
  } catch {
    return undefined;
  }
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
