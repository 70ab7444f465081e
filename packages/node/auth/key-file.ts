import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { KEY_SYNTAX } from './key-store.ts';

export interface ApiKey {
  readonly key: string;
  /** where it is: the path of its file, or the name of the environment variable */
  readonly source: string;
}

/** Path of the file that holds the API key. */
export function keyFile(home: string): string {
  return join(home, 'secrets', 'api-key');
}

/**
 * The API key of this node: AENV_API_KEY if it is set, else `$home/secrets/api-key` (0600, folder 0700), which is made
 * on the first start. New keys are `e2b_` and 64 hex digits, since some clients check that form.
 * @throws AenvError `config_invalid` when the key that is there cannot be used; the message never shows it
 */
export async function loadApiKey(home: string, env: Readonly<Record<string, string | undefined>>): Promise<ApiKey> {
  const given = env.AENV_API_KEY;
  if (given !== undefined && given !== '') return { key: checked(given, 'AENV_API_KEY'), source: 'AENV_API_KEY' };

  const path = keyFile(home);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await chmod(dirname(path), 0o700);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
    await chmod(path, 0o600);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    const key = `e2b_${randomBytes(32).toString('hex')}`;
    await writeDurable(path, `${key}\n`, 0o600);
    return { key, source: path };
  }
  return { key: checked(text.trim(), path), source: path };
}

function checked(key: string, source: string): string {
  if (KEY_SYNTAX.test(key)) return key;
  throw new AenvError('config_invalid', `${source}: not a usable API key`, {
    remediation: `Use 32 to 256 characters of A-Z, a-z, 0-9, _ and -; without AENV_API_KEY and with no key file, a new key is made.`,
  });
}
