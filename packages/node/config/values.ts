import { isIPv4, isIPv6 } from 'node:net';
import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';

/** Kinds of values as TOML spells them; also the word in the reference. */
export type ValueKind = 'string' | 'integer' | 'number' | 'boolean' | 'list of strings' | 'list of integers';

/** What the reference says of a key, attached to its schema. */
export interface KeyMeta {
  readonly kind: ValueKind;
  readonly meaning: string;
  /** the default where it is computed */
  readonly defaultText?: string;
  /** the name of the environment variable where it is not the usual one */
  readonly env?: string;
}

export const keyMeta = z.registry<KeyMeta>();

/** An absolute path without `..`. */
export const absolutePath = z
  .string()
  .refine((path) => isAbsolute(path) && !path.includes('\0'), 'must be an absolute path')
  .transform((path) => normalize(path).replace(/(?<=.)\/+$/, ''));

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** `host:port` or `[v6]:port`; port 0 lets the kernel choose one. */
export const listenAddress = z.string().transform((text, context): ListenAddress => {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const [, v6, name, portText] = match ?? [];
  const port = Number(portText);
  const host = v6 ?? name;
  const named = name !== undefined && (isIPv4(name) || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(name));
  if (host === undefined || port > 65535 || (v6 === undefined ? !named : !isIPv6(v6))) {
    context.issues.push({ code: 'custom', message: 'must be HOST:PORT or [IPV6]:PORT', input: text });
    return z.NEVER;
  }
  return { host, port };
});

/** An IPv4 range such as 10.0.0.0/8. */
export const cidr4 = z.string().refine((text) => {
  const [address = '', bits = '', ...more] = text.split('/');
  return isIPv4(address) && more.length === 0 && /^\d{1,2}$/.test(bits) && Number(bits) <= 32;
}, 'must be an IPv4 range such as 10.0.0.0/8');

/** A domain name, lower case, without a leading dot. */
export const domain = z
  .string()
  .transform((text) => text.toLowerCase())
  .refine(
    (text) =>
      text.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:\d{1,5})?$/.test(text),
    'must be a domain name such as sandbox.example.com, with :PORT where clients need one',
  );

const INTEGER = /^[+-]?\d+(_\d+)*$/;

/**
 * The value that an environment variable or a flag stands for; lists are separated by commas. What does not fit stays
 * text, so that the schema names the problem.
 */
export function fromText(text: string, kind: ValueKind): unknown {
  switch (kind) {
    case 'string':
      return text;
    case 'integer':
      return INTEGER.test(text) ? Number(text.replaceAll('_', '')) : text;
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'list of strings':
      return items(text);
    case 'list of integers':
      return items(text).map((item) => (INTEGER.test(item) ? Number(item) : item));
  }
}

function items(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
