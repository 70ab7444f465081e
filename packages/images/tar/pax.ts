/** Records of PAX extended headers, values as bytes: names and extended attributes need not be UTF-8. */
export type PaxRecords = ReadonlyMap<string, Buffer>;

/**
 * Parses `"<length> <key>=<value>\n"` records (POSIX pax, "pax Extended Header").
 * @returns undefined when a record does not have this form
 */
export function parsePax(data: Buffer): PaxRecords | undefined {
  const records = new Map<string, Buffer>();
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(0x20, at);
    if (space === -1 || space - at > 10) return undefined;
    const digits = data.toString('latin1', at, space);
    if (!/^[1-9]\d*$/.test(digits)) return undefined;
    const end = at + Number(digits);
    const equals = data.indexOf(0x3d, space);
    if (end > data.length || data[end - 1] !== 0x0a || equals === -1 || equals >= end) return undefined;
    const key = data.toString('utf8', space + 1, equals);
    if (key === '') return undefined;
    records.set(key, data.subarray(equals + 1, end - 1));
    at = end;
  }
  return records;
}

const SCHILY = 'SCHILY.xattr.';
const LIBARCHIVE = 'LIBARCHIVE.xattr.';

/** Extended attributes in either of the two spellings; star's wins, since libarchive writes both with the same value. */
export function xattrsOf(records: PaxRecords): ReadonlyMap<string, Buffer> {
  const xattrs = new Map<string, Buffer>();
  for (const [key, value] of records) {
    if (!key.startsWith(LIBARCHIVE)) continue;
    const name = percentDecode(key.slice(LIBARCHIVE.length));
    if (name !== undefined) xattrs.set(name, Buffer.from(value.toString('latin1'), 'base64'));
  }
  for (const [key, value] of records) {
    if (key.startsWith(SCHILY)) xattrs.set(key.slice(SCHILY.length), value);
  }
  return xattrs;
}

function percentDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
