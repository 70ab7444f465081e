import { parsePort, parseSandboxId } from './names.ts';

export type HostLabel =
  /** the host does not try to name a sandbox */
  | { readonly kind: 'none' }
  | { readonly kind: 'sandbox'; readonly sandboxId: string; readonly port: number }
  /** it tries and fails; `label` is what it tried with */
  | { readonly kind: 'malformed'; readonly label: string };

/** Longest host looked at: a DNS name has at most 253 characters, and a port may follow. */
const MAX_HOST = 260;
/** A first label that starts with a digit and has a dash is meant as PORT-SANDBOXID. */
const ATTEMPT = /^[0-9][a-z0-9]*-/;
const IPV4 = /^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$/;

/**
 * Reads `PORT-SANDBOXID.anything` from a Host header, in any case, with or without a port behind it. IP literals, names
 * without a dot and names whose first label does not start with a number and a dash name no sandbox.
 */
export function parseHostLabel(host: string): HostLabel {
  if (host.length > MAX_HOST || host.startsWith('[')) return { kind: 'none' };
  const name = host.replace(/:[0-9]*$/, '').toLowerCase();
  const dot = name.indexOf('.');
  if (dot <= 0 || dot === name.length - 1 || IPV4.test(name)) return { kind: 'none' };
  const label = name.slice(0, dot);
  if (!ATTEMPT.test(label)) return { kind: 'none' };
  const dash = label.indexOf('-');
  const port = parsePort(label.slice(0, dash));
  const sandboxId = parseSandboxId(label.slice(dash + 1));
  if (port === undefined || sandboxId === undefined) return { kind: 'malformed', label };
  return { kind: 'sandbox', sandboxId, port };
}
