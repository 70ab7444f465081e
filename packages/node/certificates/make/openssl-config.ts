/**
 * The configuration file of `openssl req` for the two certificates of a development domain.
 * @param domain a checked domain name, no port
 */
export function opensslConfig(domain: string): string {
  return `[req]
prompt = no
string_mask = utf8only
distinguished_name = unused

[unused]
CN = unused

[authority]
basicConstraints = critical, CA:true, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash

[server]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = ${namesOf(domain).join(', ')}
`;
}

/** What the certificate is for; a wildcard stands for one label, which is all that hosts of sandboxes have. */
function namesOf(domain: string): string[] {
  const names = new Set([domain, `*.${domain}`, `api.${domain}`, `sandbox.${domain}`, 'localhost']);
  return [...[...names].map((name) => `DNS:${name}`), 'IP:127.0.0.1', 'IP:::1'];
}
