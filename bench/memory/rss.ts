import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../sampling/statistics.ts';

const EVERY_MS = 1_000;
const STEADY = 6;
const STEADY_MIB = 0.5;
const LIMIT_MS = 60_000;

/** Resident memory in MiB. */
export interface Rss {
  readonly total: number;
  /** of its own, as opposed to pages of files that other processes share */
  readonly anonymous: number;
  /** whether it had come to rest when the waiting was over */
  readonly settled: boolean;
}

/** The resident memory of a process after it has come to rest: several readings in a row that hardly differ. */
export async function settledRss(pid: number, signal: AbortSignal): Promise<Rss> {
  const readings: Omit<Rss, 'settled'>[] = [];
  for (let waited = 0; ; waited += EVERY_MS) {
    readings.push(parseStatus(await readFile(`/proc/${pid}/status`, 'utf8')));
    const newest = readings.slice(-STEADY);
    const totals = newest.map(({ total }) => total);
    const settled = newest.length === STEADY && Math.max(...totals) - Math.min(...totals) < STEADY_MIB;
    if (settled || waited >= LIMIT_MS) {
      return { total: median(totals), anonymous: median(newest.map(({ anonymous }) => anonymous)), settled };
    }
    await delay(EVERY_MS, undefined, { signal });
  }
}

/** proc_pid_status(5), which gives kB. */
export function parseStatus(text: string): Omit<Rss, 'settled'> {
  const read = (key: string) => Number(new RegExp(`^${key}:\\s*(\\d+) kB$`, 'm').exec(text)?.[1]) / 1024;
  const found = { total: read('VmRSS'), anonymous: read('RssAnon') };
  if (!(found.total > 0)) throw new Error('the process has no memory; it has ended');
  return found;
}
