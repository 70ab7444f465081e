import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureDevelopmentCertificate } from '../../certificates/make/development-certificate.ts';
import type { Config } from '../../config/schema.ts';
import type { Output } from '../terminal/output.ts';

export interface CertOptions {
  readonly config: Config;
  /** domain without a port; default the first of `proxy.domains`, else `aenv.localhost` */
  readonly domain?: string;
  /** folder of the files; default `tls` in the home folder */
  readonly out?: string;
  readonly output: Output;
  readonly signal: AbortSignal;
}

const DEFAULT_DOMAIN = 'aenv.localhost';

/**
 * `aenv cert`: makes a private authority and a wildcard certificate for a development domain, or keeps those that are
 * there, and says how the daemon serves it and how clients trust it.
 * @throws AenvError what is missing or failed, with the remedy
 */
export async function cert({ config, domain: asked, out, output, signal }: CertOptions): Promise<void> {
  const domain = asked ?? config.proxy.domains[0]?.replace(/:\d+$/, '') ?? DEFAULT_DOMAIN;
  const dir = out ?? join(config.home, 'tls');
  // As the daemon makes it, which may come later.
  if (out === undefined) await mkdir(config.home, { recursive: true, mode: 0o711 });
  const made = await ensureDevelopmentCertificate({ domain, dir, signal });
  const until = made.validTo.toISOString().slice(0, 10);
  const verb = made.made.certificate ? 'New certificate' : 'Certificate';
  output.out(`${verb} for ${domain} and *.${domain}, valid until ${until}.`);
  output.out(`${made.made.authority ? 'New private authority' : 'Private authority'}: ${made.authority}`);
  const { cert: path, key } = made;
  if (config.tls.cert === path && config.tls.key === key) {
    output.out('The daemon serves this certificate; a running one takes a new one by itself.');
  }
  const external = `${domain}:${config.tls.listen.port}`;
  output.out(`
For the daemon (config.toml), then \`aenv down\` and \`aenv up\`:

  [tls]
  cert = ${JSON.stringify(path)}
  key = ${JSON.stringify(key)}

  [proxy]
  domains = [${JSON.stringify(external)}]

For clients:

  export E2B_DOMAIN=${external}
  export NODE_EXTRA_CA_CERTS=${made.authority}    # Node
  export SSL_CERT_FILE=${made.authority}          # Python, curl and others that use OpenSSL

${domain} and *.${domain} have to resolve to this host. Run this command again to renew the certificate.`);
}
