/** End of the hash space, which no name may have (ext4 documentation, "Hash Tree Directories"). */
const END = 0xfffffffe;

const K2 = 0o13240474631;
const K3 = 0o15666365641;

/**
 * ext4's "half MD4, unsigned" hash of a name, by which large directories are sorted.
 * @param name 1 to 255 bytes, one a character (latin1)
 * @param seed 16 bytes, the superblock's `s_hash_seed`
 * @returns unsigned 32 bits, the lowest one 0
 */
export function dirHash(name: string, seed: Buffer): number {
  const state = Int32Array.from([0, 4, 8, 12], (at) => seed.readInt32LE(at));
  const words = new Int32Array(8);
  for (let from = 0; from < name.length; from += 32) {
    toWords(name, from, words);
    transform(state, words);
  }
  const hash = ((state[1] ?? 0) & ~1) >>> 0;
  return hash === END ? END - 2 : hash;
}

/** Up to 32 bytes as eight words; what is missing is filled with the number of bytes that are left. */
function toWords(name: string, from: number, words: Int32Array): void {
  const left = name.length - from;
  const padding = Math.imul(left, 0x01010101);
  const length = Math.min(left, 32);
  words.fill(padding);
  let word = padding;
  let index = 0;
  for (let at = 0; at < length; at++) {
    word = (name.charCodeAt(from + at) + (word << 8)) | 0;
    if (at % 4 === 3) {
      words[index++] = word;
      word = padding;
    }
  }
  if (index < 8) words[index] = word;
}

function rotate(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by));
}

function transform(state: Int32Array, input: Int32Array): void {
  let a = state[0] ?? 0;
  let b = state[1] ?? 0;
  let c = state[2] ?? 0;
  let d = state[3] ?? 0;
  const word = (index: number): number => input[index] ?? 0;

  for (const at of [0, 4]) {
    a = rotate((a + (d ^ (b & (c ^ d))) + word(at)) | 0, 3);
    d = rotate((d + (c ^ (a & (b ^ c))) + word(at + 1)) | 0, 7);
    c = rotate((c + (b ^ (d & (a ^ b))) + word(at + 2)) | 0, 11);
    b = rotate((b + (a ^ (c & (d ^ a))) + word(at + 3)) | 0, 19);
  }
  for (const at of [1, 0]) {
    a = rotate((a + ((b & c) + ((b ^ c) & d)) + word(at) + K2) | 0, 3);
    d = rotate((d + ((a & b) + ((a ^ b) & c)) + word(at + 2) + K2) | 0, 5);
    c = rotate((c + ((d & a) + ((d ^ a) & b)) + word(at + 4) + K2) | 0, 9);
    b = rotate((b + ((c & d) + ((c ^ d) & a)) + word(at + 6) + K2) | 0, 13);
  }
  for (const at of [3, 1]) {
    const other = at === 3 ? 2 : 0;
    a = rotate((a + (b ^ c ^ d) + word(at) + K3) | 0, 3);
    d = rotate((d + (a ^ b ^ c) + word(at + 4) + K3) | 0, 9);
    c = rotate((c + (d ^ a ^ b) + word(other) + K3) | 0, 11);
    b = rotate((b + (c ^ d ^ a) + word(other + 4) + K3) | 0, 15);
  }
  state[0] = ((state[0] ?? 0) + a) | 0;
  state[1] = ((state[1] ?? 0) + b) | 0;
  state[2] = ((state[2] ?? 0) + c) | 0;
  state[3] = ((state[3] ?? 0) + d) | 0;
}
