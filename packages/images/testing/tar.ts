/** Writes archives for tests, also such as no honest program would write. Strings hold one byte a character (latin1). */
export interface TestMember {
  readonly name: string;
  /** type flag; default `5` for names with a slash at the end, else `0` */
  readonly flag?: string;
  readonly data?: string | Buffer;
  readonly linkName?: string;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  /** seconds */
  readonly mtime?: number;
  readonly dev?: readonly [number, number];
  /** records of a PAX header before the member */
  readonly pax?: Readonly<Record<string, string | Buffer>>;
  /** size in the header where it is not that of the data */
  readonly size?: number;
  readonly magic?: 'ustar' | 'gnu' | 'v7';
}

export function tar(...members: readonly TestMember[]): Buffer {
  return Buffer.concat([...members.map(member), Buffer.alloc(1024)]);
}

export function member(item: TestMember): Buffer {
  const data = bytes(item.data ?? '');
  const parts = [header(item, data.length), padded(data)];
  if (item.pax !== undefined) parts.unshift(paxHeader(item.pax, 'x'));
  return Buffer.concat(parts);
}

export function paxHeader(records: Readonly<Record<string, string | Buffer>>, flag: 'x' | 'g'): Buffer {
  const data = Buffer.concat(Object.entries(records).map(([key, value]) => paxRecord(key, value)));
  return Buffer.concat([header({ name: 'pax', flag }, data.length), padded(data)]);
}

export function paxRecord(key: string, value: string | Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(` ${key}=`), bytes(value), Buffer.from('\n')]);
  let length = body.length + 1;
  while (String(length).length + body.length !== length) length = String(length).length + body.length;
  return Buffer.concat([Buffer.from(String(length)), body]);
}

function header(item: TestMember, dataLength: number): Buffer {
  const block = Buffer.alloc(512);
  const octal = (value: number, at: number, width: number) => {
    block.write(value.toString(8).padStart(width - 1, '0'), at, 'latin1');
  };
  const flag = item.flag ?? (item.name.endsWith('/') ? '5' : '0');
  block.write(item.name.slice(0, 100), 0, 'latin1');
  octal(item.mode ?? (flag === '5' ? 0o755 : 0o644), 100, 8);
  octal(item.uid ?? 0, 108, 8);
  octal(item.gid ?? 0, 116, 8);
  octal(item.size ?? dataLength, 124, 12);
  const mtime = item.mtime ?? 1_700_000_000;
  if (mtime >= 0) octal(mtime, 136, 12);
  else {
    block.fill(0xff, 136, 148);
    block.writeBigInt64BE(BigInt(mtime), 140);
  }
  block.write(flag, 156, 'latin1');
  block.write((item.linkName ?? '').slice(0, 100), 157, 'latin1');
  const magic = { ustar: 'ustar\x0000', gnu: 'ustar  \0', v7: '' }[item.magic ?? 'ustar'];
  block.write(magic, 257, 'latin1');
  const [major, minor] = item.dev ?? [0, 0];
  if (item.magic !== 'v7') {
    octal(major, 329, 8);
    octal(minor, 337, 8);
  }
  block.fill(' ', 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

function bytes(value: string | Buffer): Buffer {
  return typeof value === 'string' ? Buffer.from(value, 'latin1') : value;
}

function padded(data: Buffer): Buffer {
  return Buffer.concat([data, Buffer.alloc((512 - (data.length % 512)) % 512)]);
}

/** A stream of a buffer in pieces, so that nothing depends on where chunks end; of many bytes in larger ones. */
export async function* pieces(data: Buffer, size = data.length < 2 ** 20 ? 700 : 65_537): AsyncGenerator<Buffer> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}
