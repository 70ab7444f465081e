/** Records of PAX extended headers, values as bytes: names and extended attributes need not be UTF-8. */
export type PaxRecords = ReadonlyMap<string, Buffer>;

/** Those of a global header count for every member that follows: each is gone through each time. */
export const MAX_RECORDS = 4096;

/** GNU tar's first form of sparse members repeats these two; every other record counts once. */
const REPEATED = ['GNU.sparse.offset', 'GNU.sparse.numbytes'];

/**
 * Parses `"<length> <key>=<value>\n"` records (POSIX pax, "pax Extended Header"). The repeated records of GNU tar's sparse
 * format 0.0 come as the one record that they became in 0.1, `GNU.sparse.map`.
 * @returns undefined when a record does not have this form, or there are more than make sense
 */
export function parsePax(data: Buffer): PaxRecords | undefined {
  const records = new Map<string, Buffer>();
  const repeated: string[] = [];
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
    const value = data.subarray(equals + 1, end - 1);
    if (REPEATED.includes(key)) repeated.push(value.toString('latin1'));
    else records.set(key, value);
    if (records.size > MAX_RECORDS) return undefined;
    at = end;
  }
  if (repeated.length > 0) records.set('GNU.sparse.map', Buffer.from(repeated.join(','), 'latin1'));
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
