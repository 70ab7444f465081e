import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { run } from '@aenv/platform/process/run.ts';
import { covers, daysLeft } from '../coverage.ts';
import { type PairFiles, readPair } from '../read-pair.ts';
import { opensslConfig } from './openssl-config.ts';

/** Debian packages that the programs here come from. */
export const CERTIFICATE_HOST_PACKAGES: readonly string[] = ['openssl'];

const AUTHORITY_DAYS = 3650;
/** Some clients trust no certificate that lives longer. */
const CERTIFICATE_DAYS = 397;
const RENEW_BEFORE_DAYS = 30;

export interface DevelopmentCertificate {
  /** path of the authority's certificate, for clients to trust */
  readonly authority: string;
  readonly cert: string;
  readonly key: string;
  readonly validTo: Date;
  /** what was made by this call; the rest was there and good */
  readonly made: { readonly authority: boolean; readonly certificate: boolean };
}

export interface DevelopmentCertificateOptions {
  /** without a port; names and the wildcard below it are certified */
  readonly domain: string;
  /** made when it is not there; keys in it are 0600, the rest may be read by clients of other users */
  readonly dir: string;
  readonly signal?: AbortSignal;
}

/**
 * Makes sure that a folder holds a private authority (`ca.pem`, `ca-key.pem`) and a certificate of it for a domain and its
 * wildcard (`cert.pem`, `key.pem`). What is there is kept while it is good: a certificate until 30 days before its end, an
 * authority as long as it outlives a new certificate.
 * @throws AenvError `config_invalid` for files that cannot be used, `host_command_missing`, `host_command_failed`
 */
export async function ensureDevelopmentCertificate(
  options: DevelopmentCertificateOptions,
): Promise<DevelopmentCertificate> {
  const { domain, dir } = options;
  await mkdir(dir, { recursive: true, mode: 0o755 });
  const authority = { cert: join(dir, 'ca.pem'), key: join(dir, 'ca-key.pem') };
  const files = { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
  const names = { cert: 'authority', key: "authority's key" };

  const found = (await isThere(authority)) ? (await readPair(authority, names)).leaf : undefined;
  const authorityIsGood = found !== undefined && daysLeft(found) > CERTIFICATE_DAYS;
  if (!authorityIsGood) await make(options, { files: authority, authority: undefined });
  const issuer = authorityIsGood ? found : (await readPair(authority, names)).leaf;

  const old = (await isThere(files)) ? (await readPair(files)).leaf : undefined;
  const isGood = old?.verify(issuer.publicKey) === true && covers(old, domain) && daysLeft(old) > RENEW_BEFORE_DAYS;
  if (!isGood) await make(options, { files, authority });
  const { leaf } = await readPair(files);
  return {
    ...files,
    authority: authority.cert,
    validTo: new Date(leaf.validTo),
    made: { authority: !authorityIsGood, certificate: !isGood },
  };
}

interface Making {
  readonly files: PairFiles;
  /** who signs; absent for a certificate that signs itself, the authority's */
  readonly authority: PairFiles | undefined;
}

/** A new key and its certificate. Keys are passed to openssl as files that only their owner can read. */
async function make(
  { domain, dir, signal }: DevelopmentCertificateOptions,
  { files, authority }: Making,
): Promise<void> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const work = await mkdtemp(join(dir, '.making-'));
  try {
    const paths = { config: join(work, 'openssl.cnf'), key: join(work, 'key.pem'), cert: join(work, 'cert.pem') };
    await writeFile(paths.config, opensslConfig(domain));
    await writeFile(paths.key, key, { mode: 0o600 });
    const [section, subject, days] =
      authority === undefined
        ? [
            'authority',
            `/O=AgentENV/CN=AgentENV development authority ${randomBytes(4).toString('hex')}`,
            AUTHORITY_DAYS,
          ]
        : ['server', '/O=AgentENV/CN=AgentENV development certificate', CERTIFICATE_DAYS];
    await run(
      [
        ...(['openssl', 'req', '-x509', '-new', '-batch', '-sha256', '-config', paths.config] as const),
        ...['-extensions', section, '-subj', subject, '-days', String(days)],
        // 20 bytes at most, and positive (RFC 5280 §4.1.2.2).
        ...['-set_serial', `0x00${randomBytes(16).toString('hex')}`],
        ...['-key', paths.key, '-out', paths.cert],
        ...(authority === undefined ? [] : ['-CA', authority.cert, '-CAkey', authority.key]),
      ],
      signal === undefined ? {} : { signal },
    );
    await writeDurable(files.key, key, 0o600);
    await writeDurable(files.cert, await readFile(paths.cert), 0o644);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** @throws AenvError when only one of the two is there: nobody knows what the other one was for */
async function isThere({ cert, key }: PairFiles): Promise<boolean> {
  const [hasCert, hasKey] = await Promise.all([exists(cert), exists(key)]);
  if (hasCert === hasKey) return hasCert;
  throw new AenvError('config_invalid', `${hasCert ? key : cert} is missing beside ${hasCert ? cert : key}`, {
    remediation: 'Restore it, or remove the other one to have both made anew.',
  });
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
