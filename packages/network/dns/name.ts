/** Domain names on the wire (RFC 1035 §3.1, §4.1.4). */

export interface Name {
  /** bytes of each label as Latin-1 text, without the root; as written, upper and lower case kept */
  readonly labels: readonly string[];
}

export interface ReadName extends Name {
  /** offset of the first byte after the name */
  readonly end: number;
}

const MAX_LABEL = 63;
const MAX_NAME = 255;

/**
 * Reads the name at `offset`, or undefined when it is malformed. Compression pointers must point before the part that
 * holds them, each one before the last: so a name ends after at most as many steps as it has bytes, and loops cannot be.
 */
export function readName(bytes: Uint8Array, offset: number, compression: 'allowed' | 'refused'): ReadName | undefined {
  const labels: string[] = [];
  let at = offset;
  let limit = offset;
  let end: number | undefined;
  let size = 1;
  for (;;) {
    const length = bytes[at];
    if (length === undefined) return undefined;
    if (length === 0) return { labels, end: end ?? at + 1 };
    if (length >= 0xc0) {
      const low = bytes[at + 1];
      if (low === undefined || compression === 'refused') return undefined;
      const target = (length & 0x3f) * 256 + low;
      if (target >= limit) return undefined;
      end ??= at + 2;
      at = target;
      limit = target;
      continue;
    }
    if (length > MAX_LABEL || at + 1 + length > bytes.length) return undefined;
    size += 1 + length;
    if (size > MAX_NAME) return undefined;
    labels.push(Buffer.from(bytes.subarray(at + 1, at + 1 + length)).toString('latin1'));
    at += 1 + length;
  }
}

/** The uncompressed wire form. */
export function encodeName(name: Name): Buffer {
  const parts = name.labels.flatMap((label) => [Buffer.of(label.length), Buffer.from(label, 'latin1')]);
  return Buffer.concat([...parts, Buffer.of(0)]);
}

/** Names are equal without regard to the case of ASCII letters (RFC 4343). */
export function sameName(a: Name, b: Name): boolean {
  return (
    a.labels.length === b.labels.length &&
    a.labels.every((label, i) => asciiLower(label) === asciiLower(b.labels[i] ?? ''))
  );
}

function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
