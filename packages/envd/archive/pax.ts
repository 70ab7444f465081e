import { BLOCK, encodeHeader, paddingOf } from './tar-header.ts';

/** Records of a PAX extended header: `<length> <key>=<value>\n`, values as UTF-8. */
export type PaxRecords = ReadonlyMap<string, string>;

/** A whole extended header, block and records, to stand before the entry that it describes. */
export function encodePax(records: PaxRecords): Buffer {
  const body = Buffer.concat([...records].map(([key, value]) => encodeRecord(key, value)));
  const header = encodeHeader({
    name: 'PaxHeader',
    mode: 0o644,
    size: body.length,
    mtime: 0,
    typeFlag: 'x',
    linkName: '',
  });
  return Buffer.concat([header, body, Buffer.alloc(paddingOf(body.length))]);
}

function encodeRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`);
  // The length counts its own digits.
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

/** Undefined when the bytes are no records. */
export function decodePax(body: Buffer): PaxRecords | undefined {
  const records = new Map<string, string>();
  for (let offset = 0; offset < body.length; ) {
    const space = body.indexOf(0x20, offset);
    const digits = body.toString('latin1', offset, space);
    const length = /^\d{1,7}$/.test(digits) ? Number(digits) : 0;
    const end = offset + length;
    const equals = body.indexOf(0x3d, space);
    if (space < 0 || equals < 0 || equals >= end || end > body.length || body[end - 1] !== 0x0a) return undefined;
    records.set(body.toString('utf8', space + 1, equals), body.toString('utf8', equals + 1, end - 1));
    offset = end;
  }
  return records;
}

/** The most that is read of an extended header: a path and a link target of 4 KiB, and some room. */
export const PAX_MAX = 64 * BLOCK;
