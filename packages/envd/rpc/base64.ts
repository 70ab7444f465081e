// The base64 methods of ES2026, which Node 24 does not have, done by Buffer. The protobuf library takes them where they
// exist, and otherwise goes byte by byte in JavaScript: too slow for the output and the input of processes.

type Options = { readonly alphabet?: string; readonly omitPadding?: boolean };

function toBase64(this: Uint8Array, options: Options = {}): string {
  const bytes = Buffer.from(this.buffer, this.byteOffset, this.byteLength);
  if (options.alphabet === 'base64url') return bytes.toString('base64url');
  const text = bytes.toString('base64');
  return options.omitPadding ? text.replace(/=+$/, '') : text;
}

function setFromBase64(this: Uint8Array, text: string): { read: number; written: number } {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const digits = text.length - padding;
  const size = Math.floor((digits * 3) / 4);
  // Buffer skips what is no base64, and then the result is shorter: each digit is worth six bits.
  const written = Buffer.from(this.buffer, this.byteOffset, this.byteLength).write(text, 'base64');
  if (digits % 4 === 1 || written !== Math.min(size, this.length)) throw new SyntaxError('invalid base64');
  return { read: text.length, written };
}

/** Adds the methods where the runtime lacks them. To be called before the protobuf library is loaded. */
export function installBase64(): void {
  for (const [name, value] of Object.entries({ toBase64, setFromBase64 })) {
    if (name in Uint8Array.prototype) continue;
    Object.defineProperty(Uint8Array.prototype, name, { value, writable: true, configurable: true });
  }
}
