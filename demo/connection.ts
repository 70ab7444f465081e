import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Connection {
  readonly url: string;
  readonly apiKey: string;
  readonly keyFile: string;
}

/** The daemon of this host as `aenv up` started it, or the one that AENV_URL and AENV_API_KEY name. */
export async function connectionOfThisHost(): Promise<Connection> {
  const home = process.env.AENV_HOME ?? '/var/lib/aenv';
  const runtime = process.env.AENV_RUNTIME ?? '/run/aenv';
  const keyFile = join(home, 'secrets', 'api-key');
  const url =
    process.env.AENV_URL ?? (JSON.parse(await readFile(join(runtime, 'daemon.json'), 'utf8')) as { url: string }).url;
  const apiKey = process.env.AENV_API_KEY ?? (await readFile(keyFile, 'utf8')).trim();
  return { url, apiKey, keyFile };
}
