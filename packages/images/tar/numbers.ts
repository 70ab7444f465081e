/**
 * A number field of a tar header: octal digits between optional blanks, or base-256 (first bit set, two's complement),
 * which GNU tar uses for what octal cannot hold.
 * @returns undefined when it is neither, or beyond 2^53
 */
export function parseNumber(field: Buffer): number | undefined {
  const first = field[0] ?? 0;
  if ((first & 0x80) !== 0) return parseBase256(field, first);
  const text = field.toString('latin1').replaceAll('\0', ' ').trim();
  if (text === '') return 0;
  if (!/^[0-7]+$/.test(text)) return undefined;
  const value = Number.parseInt(text, 8);
  return Number.isSafeInteger(value) ? value : undefined;
}

function parseBase256(field: Buffer, first: number): number | undefined {
  // The first bit is only the marker; the second one is the sign.
  let value = BigInt(first & 0x7f);
  if ((first & 0x40) !== 0) value -= 0x80n;
  for (const byte of field.subarray(1)) value = (value << 8n) | BigInt(byte);
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}

/** A decimal number of a PAX record, with an optional sign and fraction. */
export function parseDecimal(text: string): number | undefined {
  return /^-?\d{1,16}(\.\d{0,30})?$/.test(text) ? Number(text) : undefined;
}

/**
 * A time of a PAX record, exact to the nanosecond; what is finer is cut off, towards the past.
 * @returns undefined when it is no number
 */
export function parseTime(text: string): { readonly seconds: number; readonly nanoseconds: number } | undefined {
  const match = /^(-?)(\d{1,15})(?:\.(\d{0,30}))?$/.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = '', fraction = ''] = match;
  const seconds = Number(whole);
  const nanoseconds = Number(fraction.slice(0, 9).padEnd(9, '0'));
  if (sign === '') return { seconds, nanoseconds };
  const finer = /[1-9]/.test(fraction.slice(9)) ? 1 : 0;
  const below = nanoseconds + finer;
  if (below === 0) return { seconds: seconds === 0 ? 0 : -seconds, nanoseconds: 0 };
  return { seconds: -seconds - 1, nanoseconds: 10 ** 9 - below };
}
