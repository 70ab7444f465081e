import { createPrivateKey, X509Certificate } from 'node:crypto';
import { open } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { KeyPair } from './source.ts';

/** What messages call the two files: by default the keys of the configuration. */
const NAMES: PairFiles = { cert: 'tls.cert', key: 'tls.key' };

export interface PairFiles {
  /** path of the certificate, the chain behind it */
  readonly cert: string;
  readonly key: string;
}

/** More than any chain of certificates needs. */
const MAX_BYTES = 1024 * 1024;
/** Everybody may read or write. */
const OTHERS = 0o006;

/**
 * Reads a certificate with its key, and makes sure that they can be used together.
 * @throws AenvError `config_invalid` naming the file and what is wrong with it
 */
export async function readPair(
  { cert, key }: PairFiles,
  names = NAMES,
): Promise<KeyPair & { readonly leaf: X509Certificate }> {
  const certText = await readText(names.cert, cert);
  const keyText = await readText(names.key, key, OTHERS);
  const leaf = parse(() => new X509Certificate(certText), `${names.cert}: ${cert} is no certificate in PEM form`);
  const privateKey = parse(
    () => createPrivateKey(keyText),
    `${names.key}: ${key} is no private key in PEM form without a passphrase`,
  );
  if (!leaf.checkPrivateKey(privateKey)) {
    throw invalid(`${names.key}: ${key} is not the key of the certificate ${cert}`, {
      remediation: 'Name two files that were made together.',
    });
  }
  const pair = { cert: certText, key: keyText };
  parse(() => createSecureContext(pair), `${names.cert}: ${cert} cannot be used`);
  return { ...pair, leaf };
}

async function readText(name: string, path: string, forbidden = 0): Promise<string> {
  try {
    await using file = await open(path, 'r');
    const { mode, size } = await file.stat();
    if ((mode & forbidden) !== 0) {
      throw invalid(`${name}: ${path} is open to every user of this host`, { remediation: `Run: chmod 600 ${path}` });
    }
    if (size > MAX_BYTES) throw invalid(`${name}: ${path} is too large for what it should be`);
    return await file.readFile('utf8');
  } catch (error) {
    if (error instanceof AenvError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw invalid(`${name}: ${path} cannot be read (${code})`, { cause: error });
  }
}

/** The cause is left out: a message of the TLS library could hold parts of a key. */
function parse<T>(read: () => T, message: string): T {
  try {
    return read();
  } catch {
    throw invalid(message);
  }
}

function invalid(message: string, more: { readonly remediation?: string; readonly cause?: unknown } = {}): AenvError {
  return new AenvError('config_invalid', message, more);
}
