/** Arithmetic on IPv4 addresses, which are unsigned 32-bit numbers here. */

export interface Cidr {
  /** first address */
  readonly first: number;
  /** last address */
  readonly last: number;
  /** length of the prefix in bits */
  readonly prefix: number;
}

/** The number of a dotted address of four decimal parts, or undefined. Leading zeros are refused: some read them as octal. */
export function parseIpv4(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let value = 0;
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part)) return undefined;
    const byte = Number(part);
    if (byte > 255) return undefined;
    value = value * 256 + byte;
  }
  return value;
}

export function formatIpv4(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');
}

/**
 * `A.B.C.D/N`, or a bare address as /32.
 * @param hostBits whether bits after the prefix may be set: `refused` where they are nearly always a slip, `cleared`
 *   where the address stands for the network that it is in
 */
export function parseCidr(text: string, hostBits: 'refused' | 'cleared' = 'refused'): Cidr | undefined {
  const [address, length, ...rest] = text.split('/');
  const base = parseIpv4(address ?? '');
  if (base === undefined || rest.length > 0) return undefined;
  if (length !== undefined && !/^\d{1,2}$/.test(length)) return undefined;
  const prefix = length === undefined ? 32 : Number(length);
  if (prefix > 32) return undefined;
  const range = cidr(base, prefix);
  return hostBits === 'refused' && range.first !== base ? undefined : range;
}

/** The range of `prefix` bits that `address` lies in. */
export function cidr(address: number, prefix: number): Cidr {
  const size = 2 ** (32 - prefix);
  const first = address - (address % size);
  return { first, last: first + size - 1, prefix };
}

export function formatCidr(range: Cidr): string {
  return `${formatIpv4(range.first)}/${range.prefix}`;
}

export function overlaps(a: Cidr, b: Cidr): boolean {
  return a.first <= b.last && b.first <= a.last;
}
