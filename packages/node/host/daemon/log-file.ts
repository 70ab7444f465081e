import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The log is moved aside before a start when it is larger, so that at most two such files stay. */
const ROTATE_BYTES = 16 * 1024 * 1024;
const TAIL_BYTES = 16 * 1024;

export function daemonLog(home: string): string {
  return join(home, 'logs', 'daemon.log');
}

/** Opens the log for appending (0600, folder 0711, because serial logs of microVMs live beside it). */
export async function openDaemonLog(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o711 });
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  if (size > ROTATE_BYTES) await rename(path, `${path}.1`);
  return open(path, 'a', 0o600);
}

/** The last lines of the log behind an offset, for error messages. */
export async function lastLogLines(path: string, from: number, count: number): Promise<string> {
  try {
    await using file = await open(path, 'r');
    const { size } = await file.stat();
    const start = Math.max(Math.min(from, size), size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-count).map(readable).join('\n');
  } catch {
    return '';
  }
}

/** A structured line as a sentence; anything else as it is. */
function readable(line: string): string {
  try {
    const { msg, level, time: _, ...fields } = JSON.parse(line) as Record<string, unknown>;
    if (typeof msg !== 'string') return line;
    const rest = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`;
    return `${typeof level === 'string' ? level : 'info'}: ${msg}${rest}`;
  } catch {
    return line;
  }
}
