import { readFile } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { QmpClient } from '../qmp/client.ts';
import { type Mapping, mappingsOf, parseMaps } from './mapping.ts';

/** QEMU's name of a guest's memory. */
export const RAM = 'ram0';

const COMMAND_TIMEOUT_MS = 10_000;

/**
 * Where a QEMU has the memory of its guest: a mapping of the file that it was given, or else memory of no file.
 * @throws AenvError `capture_failed` when it is neither as a whole
 */
export async function guestMemory(
  qmp: Pick<QmpClient, 'execute'>,
  pid: number,
  file: string,
  size: number,
): Promise<readonly Mapping[]> {
  const ofFile = await mappingsOf(pid, file, size);
  if (ofFile.length > 0) return ofFile;
  const start = ramAddress(await hmp(qmp, 'info ramblock'), size);
  // QEMU is asked where it is, but only believed when there is such memory.
  const anonymous = parseMaps(await readFile(`/proc/${pid}/maps`, 'utf8'), '');
  if (start !== undefined && anonymous.some((part) => part.start <= start && start + size <= part.end)) {
    return [{ start, end: start + size, fileOffset: 0 }];
  }
  throw new AenvError('capture_failed', `process ${pid} does not have the memory of a guest in one piece`);
}

/** The address of the memory in the table that QEMU prints, whose columns are separated by blanks; the last but one is it. */
export function ramAddress(table: string, size: number): number | undefined {
  for (const line of table.split('\n')) {
    const [name, , , , , total, address] = line.trim().split(/\s+/);
    if (name === RAM && Number(total) === size && /^0x[0-9a-f]+$/.test(address ?? '')) return Number(address);
  }
  return undefined;
}

/** A command of QEMU's monitor for people, for what has no command of its own. */
async function hmp(qmp: Pick<QmpClient, 'execute'>, command: string): Promise<string> {
  const answer = await qmp.execute('human-monitor-command', { 'command-line': command }, COMMAND_TIMEOUT_MS);
  return typeof answer === 'string' ? answer : '';
}
