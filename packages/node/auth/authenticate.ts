import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Caller, KEY_SYNTAX, type KeyStore } from './key-store.ts';

export interface AuthenticatedCaller extends Caller {
  /** the key as it was presented */
  readonly key: string;
}

/**
 * Who sends this request: by X-API-Key, or by `Authorization: Bearer` when that header is absent. A header that was sent
 * twice arrives joined by a comma, which no key contains, and so is refused.
 * @throws AenvError `unauthorized`
 */
export async function authenticate(headers: Headers, keys: KeyStore): Promise<AuthenticatedCaller> {
  const key = headers.get('x-api-key') ?? bearer(headers.get('authorization'));
  if (key === undefined) throw new AenvError('unauthorized', 'no API key was sent');
  const caller = KEY_SYNTAX.test(key) ? await keys.verify(key) : undefined;
  if (caller === undefined) throw new AenvError('unauthorized', 'the API key is not valid');
  return { ...caller, key };
}

function bearer(header: string | null): string | undefined {
  return header === null ? undefined : /^Bearer +(\S+) *$/i.exec(header)?.[1];
}
