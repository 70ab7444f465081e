/** Constants of elf(5), for 64 bits, little-endian. */
const SHT_DYNAMIC = 6;
const SHT_DYNSYM = 11;
const SHT_VERNEED = 0x6fff_fffe;
const DT_NEEDED = 1;
/** In no range that a loader knows, so it is passed over. */
const DT_NOTHING = 0x6000_0000;
const STB_WEAK = 2;
const VER_FLG_WEAK = 2;
const C_LIBRARY = 'libc.so.6';

/**
 * A dynamic program that starts without some of its libraries. What it would take from them is null, so it must not use it:
 * for a tool with drivers for everything of which a test needs one.
 * @param elf as distributions have it, with section headers
 * @param keep whether a library stays, by its name
 */
export function withoutLibraries(elf: Buffer, keep: (name: string) => boolean): Buffer {
  const out = Buffer.from(elf);
  const sections = sectionsOf(out);
  const only = (type: number) => {
    const [found] = sections.filter((section) => section.type === type);
    if (found === undefined) throw new Error(`no section of type ${type}`);
    return found;
  };
  const dynamic = only(SHT_DYNAMIC);
  const strings = sections[dynamic.link];
  if (strings === undefined) throw new Error('no names');
  const nameAt = (at: number) => {
    const start = strings.offset + at;
    return out.toString('latin1', start, out.indexOf(0, start));
  };
  let libc = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) {
    if (out.readUInt32LE(at) !== DT_NEEDED) continue;
    const name = out.readUInt32LE(at + 8);
    if (nameAt(name) === C_LIBRARY) libc = name;
    else if (!keep(nameAt(name))) out.writeUInt32LE(DT_NOTHING, at);
  }
  const symbols = only(SHT_DYNSYM);
  for (let at = symbols.offset + 24; at < symbols.offset + symbols.size; at += 24) {
    const info = out.readUInt8(at + 4);
    if (out.readUInt16LE(at + 6) === 0) out.writeUInt8((STB_WEAK << 4) | (info & 15), at + 4);
  }
  // Versions of a library that is not there are fatal: they are asked of one that is, and need not be found.
  for (let at = only(SHT_VERNEED).offset, next = 1; next !== 0; at += next) {
    next = out.readUInt32LE(at + 12);
    if (libc === 0 || nameAt(out.readUInt32LE(at + 4)) === C_LIBRARY || keep(nameAt(out.readUInt32LE(at + 4))))
      continue;
    out.writeUInt32LE(libc, at + 4);
    for (let version = at + out.readUInt32LE(at + 8), step = 1; step !== 0; version += step) {
      step = out.readUInt32LE(version + 12);
      out.writeUInt16LE(out.readUInt16LE(version + 4) | VER_FLG_WEAK, version + 4);
    }
  }
  return out;
}

function sectionsOf(elf: Buffer) {
  const table = Number(elf.readBigUInt64LE(40));
  const [size, count] = [elf.readUInt16LE(58), elf.readUInt16LE(60)];
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * size;
    const [offset, length] = [Number(elf.readBigUInt64LE(at + 24)), Number(elf.readBigUInt64LE(at + 32))];
    return { type: elf.readUInt32LE(at + 4), offset, size: length, link: elf.readUInt32LE(at + 40) };
  });
}
