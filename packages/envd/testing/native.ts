import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';

/**
 * Path of the native program for tests: AENV_NATIVE, or one built from its sources with the host's compiler, once for
 * each state of the sources.
 */
export function nativeForTests(): string {
  const given = process.env.AENV_NATIVE;
  if (given !== undefined && given !== '') return given;
  const folder = join(import.meta.dirname, '../../guest/native');
  const names = readdirSync(folder).filter((name) => /\.[ch]$/.test(name));
  const hash = createHash('sha256');
  for (const name of names.sort()) hash.update(name).update(readFileSync(join(folder, name)));
  const cache = join(import.meta.dirname, '../../../.build/test-native');
  mkdirSync(cache, { recursive: true });
  const target = join(cache, hash.digest('hex').slice(0, 16));
  if (!existsSync(target)) build(folder, names, target);
  return target;
}

function build(folder: string, names: readonly string[], target: string): void {
  const scratch = mkdtempSync(`${target}-build-`);
  try {
    const multiarch = execFileSync('gcc', ['-print-multiarch'], { encoding: 'utf8' }).trim();
    const headers = join(scratch, 'include');
    mkdirSync(headers);
    for (const [name, from] of [
      ['linux', 'linux'],
      ['asm-generic', 'asm-generic'],
      ['asm', `${multiarch}/asm`],
    ] as const) {
      symlinkSync(join('/usr/include', from), join(headers, name));
    }
    const sources = names.filter((name) => name.endsWith('.c')).map((name) => join(folder, name));
    const output = join(scratch, 'aenv-guest');
    execFileSync('musl-gcc', ['-static', '-O2', '-std=c11', '-Wall', '-isystem', headers, '-o', output, ...sources]);
    // Test files run side by side; the last one to finish wins, with the same content.
    renameSync(output, target);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
