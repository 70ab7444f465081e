import type { X509Certificate } from 'node:crypto';
import { dirname, join } from 'node:path';
import { covers, daysLeft } from '../../certificates/coverage.ts';
import type { Config } from '../../config/schema.ts';
import { type Finding, fail, ok, warn } from './check.ts';
import type { HostProbes } from './probes.ts';

/** A renewal that has not come by then will hardly come by itself. */
const WARN_DAYS = 14;

/**
 * Whether the certificate that is configured can be served, for how long, and for which domains. No finding where HTTPS
 * is not configured.
 * @throws AenvError `config_invalid` for files that cannot be used together
 */
export async function checkCertificate({
  config,
  probes,
}: {
  readonly config: Config;
  readonly probes: Pick<HostProbes, 'certificate'>;
}): Promise<readonly Finding[]> {
  const { cert, key } = config.tls;
  if (cert === undefined || key === undefined) return [];
  const leaf = await probes.certificate({ cert, key });
  return [judge(leaf, config, cert)];
}

function judge(leaf: X509Certificate, config: Config, path: string): Finding {
  const name = 'certificate';
  const own = dirname(path) === join(config.home, 'tls');
  const renew = own ? 'aenv cert' : `renew ${path} where it comes from; the daemon takes the new one by itself`;
  const day = new Date(leaf.validTo).toISOString().slice(0, 10);
  const days = daysLeft(leaf);
  if (days < 0) return fail(name, `${path} has expired on ${day}`, renew);
  if (Date.parse(leaf.validFrom) > Date.now()) {
    return fail(name, `${path} is valid only from ${leaf.validFrom}`, 'set the clock of this host, or wait');
  }
  const { domains } = config.proxy;
  const bare = domains.filter((domain) => !covers(leaf, domain));
  if (bare.length > 0) {
    const [first = ''] = bare;
    return fail(
      name,
      `${path} does not hold for ${bare.map((domain) => `*.${domain.replace(/:\d+$/, '')}`).join(', ')}`,
      own && domains.length === 1
        ? `aenv cert --domain ${first.replace(/:\d+$/, '')}`
        : 'get a certificate with the wildcard of each domain, or correct `proxy.domains`',
    );
  }
  if (days < WARN_DAYS) return warn(name, `${path} expires on ${day}`, renew);
  const what = domains.length === 0 ? 'no domain is configured (`proxy.domains`)' : domains.join(', ');
  return ok(name, `${path} is valid until ${day}; ${what}`);
}
