/**
 * Leads every name under one domain to the loopback, as a wildcard entry of a name server would; a hosts file knows no
 * wildcards. For the process that imports it, and with `--import` for one of its children. The domain is in
 * AENV_COMPAT_DOMAIN.
 */
import dns from 'node:dns';

interface Answer {
  readonly address: string;
  readonly family: 4;
}
type Done = (error: Error | null, address: string | readonly Answer[], family?: number) => void;

const LOOPBACK: Answer = { address: '127.0.0.1', family: 4 };
const original = dns.lookup;

function lookup(name: string, options: unknown, done?: Done): void {
  const domain = process.env.AENV_COMPAT_DOMAIN;
  if (domain === undefined || !(name === domain || name.endsWith(`.${domain}`))) {
    Reflect.apply(original, dns, done === undefined ? [name, options] : [name, options, done]);
    return;
  }
  const answer = done ?? (options as Done);
  const all = typeof options === 'object' && options !== null && 'all' in options && options.all === true;
  // As the original: never before the caller has gone on.
  process.nextTick(() => (all ? answer(null, [LOOPBACK]) : answer(null, LOOPBACK.address, LOOPBACK.family)));
}

// Sockets take the function from this object each time that they connect.
Reflect.set(dns, 'lookup', lookup);
