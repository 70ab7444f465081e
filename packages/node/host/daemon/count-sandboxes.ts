import { readFile } from 'node:fs/promises';
import { keyFile } from '../../auth/key-file.ts';

/**
 * How many sandboxes the daemon has, as its API tells whoever holds the key of this host; undefined when it cannot be
 * asked, which keeps nobody from stopping it.
 */
export async function countSandboxes(
  url: string,
  home: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<number | undefined> {
  try {
    const key = env.AENV_API_KEY || (await readFile(keyFile(home), 'utf8')).trim();
    const response = await fetch(new URL('/sandboxes', url), {
      headers: { 'x-api-key': key },
      signal: AbortSignal.timeout(3000),
    });
    const body: unknown = await response.json();
    return response.ok && Array.isArray(body) ? body.length : undefined;
  } catch {
    return undefined;
  }
}
