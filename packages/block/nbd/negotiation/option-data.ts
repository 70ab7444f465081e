/** Parsers of what options carry. They take untrusted bytes and return undefined when these are not what they should be. */

/** doc/proto.md: names and queries have at most 4096 bytes. */
const MAX_STRING = 4096;
const MAX_QUERIES = 64;

export interface InfoRequest {
  readonly name: string;
  readonly types: readonly number[];
}

/** NBD_OPT_INFO, NBD_OPT_GO. */
export function parseInfoRequest(data: Buffer): InfoRequest | undefined {
  const name = readString(data, 0);
  if (name === undefined || name.end + 2 > data.length) return undefined;
  const count = data.readUInt16BE(name.end);
  if (data.length !== name.end + 2 + 2 * count) return undefined;
  const types: number[] = [];
  for (let at = name.end + 2; at < data.length; at += 2) types.push(data.readUInt16BE(at));
  return { name: name.text, types };
}

export interface MetaContextRequest {
  readonly name: string;
  readonly queries: readonly string[];
}

/** NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT. */
export function parseMetaContextRequest(data: Buffer): MetaContextRequest | undefined {
  const name = readString(data, 0);
  if (name === undefined || name.end + 4 > data.length) return undefined;
  const count = data.readUInt32BE(name.end);
  if (count > MAX_QUERIES) return undefined;
  const queries: string[] = [];
  let at = name.end + 4;
  for (let index = 0; index < count; index++) {
    const query = readString(data, at);
    if (query === undefined) return undefined;
    queries.push(query.text);
    at = query.end;
  }
  return at === data.length ? { name: name.text, queries } : undefined;
}

function readString(data: Buffer, at: number): { readonly text: string; readonly end: number } | undefined {
  if (at + 4 > data.length) return undefined;
  const length = data.readUInt32BE(at);
  const end = at + 4 + length;
  if (length > MAX_STRING || end > data.length) return undefined;
  return { text: data.toString('utf8', at + 4, end), end };
}
