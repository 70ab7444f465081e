import type { X509Certificate } from 'node:crypto';

const DAY_MS = 86_400_000;

/** Days until a certificate ends; negative after that. */
export function daysLeft(certificate: X509Certificate, now = Date.now()): number {
  return (Date.parse(certificate.validTo) - now) / DAY_MS;
}

/** Whether a certificate is good for all that a domain leads to: labels of sandboxes and `api` below it. */
export function covers(certificate: X509Certificate, domain: string): boolean {
  const host = domain.replace(/:\d+$/, '');
  // A label that no certificate names one by one; only a wildcard fits.
  return [`49983-i0123456789abcdef0123.${host}`, `api.${host}`].every(
    (name) => certificate.checkHost(name, { subject: 'never' }) !== undefined,
  );
}
