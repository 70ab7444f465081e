import { readFile } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** A part of a file that a process has mapped. Addresses and offsets in bytes. */
export interface Mapping {
  readonly start: number;
  readonly end: number;
  readonly fileOffset: number;
}

/**
 * Where a process has mapped a file, in the order of the file; nothing when it has not.
 * @throws AenvError `capture_failed` when it is mapped, but not as a whole and once
 */
export async function mappingsOf(pid: number, path: string, size: number): Promise<Mapping[]> {
  const found = parseMaps(await readFile(`/proc/${pid}/maps`, 'utf8'), path);
  if (found.length === 0) return found;
  let offset = 0;
  for (const part of found) {
    if (part.fileOffset !== offset) break;
    offset += part.end - part.start;
  }
  if (offset !== size) {
    throw new AenvError('capture_failed', `process ${pid} does not have ${path} mapped once and as a whole`);
  }
  return found;
}

/** Lines of /proc/PID/maps, see proc_pid_maps(5); a newline in a path is written there as `\012`. */
export function parseMaps(text: string, path: string): Mapping[] {
  const wanted = path.replaceAll('\n', '\\012');
  const found: Mapping[] = [];
  for (const line of text.split('\n')) {
    const [, start, end, fileOffset, name] = /^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+ +(.*)$/.exec(line) ?? [];
    if (start === undefined || end === undefined || fileOffset === undefined || name !== wanted) continue;
    found.push({
      start: Number.parseInt(start, 16),
      end: Number.parseInt(end, 16),
      fileOffset: Number.parseInt(fileOffset, 16),
    });
  }
  return found.sort((a, b) => a.fileOffset - b.fileOffset);
}
