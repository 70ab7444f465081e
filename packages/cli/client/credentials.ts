import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CliError } from '../output/cli-error.ts';

export interface Credentials {
  readonly url: string;
  readonly apiKey: string;
}

/** The stored credentials, or undefined when there are none. A damaged file is an error, not an absence. */
export async function readCredentials(path: string): Promise<Credentials | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch {
    return undefined;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (
      typeof value === 'object' &&
      value !== null &&
      'url' in value &&
      typeof value.url === 'string' &&
      'apiKey' in value &&
      typeof value.apiKey === 'string'
    ) {
      return { url: value.url, apiKey: value.apiKey };
    }
  } catch {
    // told below
  }
  throw new CliError(`the credentials file ${path} is damaged`, 'Write it again with `aenv auth`.');
}

/** Stores credentials, readable to their owner only. */
export async function writeCredentials(path: string, credentials: Credentials): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}
