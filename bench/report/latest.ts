import { readFile } from 'node:fs/promises';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { MachineFacts } from '../host/machine.ts';
import type { Row } from '../measurement.ts';

type Load = { readonly before: number; readonly after: number };

/** A row with the run that it is of. */
interface WrittenRow extends Row {
  /** RFC 3339, end of the run */
  readonly measuredAt: string;
  /** averages of the host over one minute, before and after the run: on a busy machine only ratios say anything */
  readonly load: Load;
}

/** What `latest.json` holds. */
interface Report {
  readonly machine: MachineFacts;
  readonly rows: readonly WrittenRow[];
}

export interface BenchRun {
  readonly measuredAt: string;
  readonly load: Load;
  readonly machine: MachineFacts;
  /** whether all measurements were made */
  readonly complete: boolean;
  readonly rows: readonly Row[];
}

/**
 * Writes the rows of a run down. Those of a run of some measurements take the places of the rows of these measurements, and
 * each row says which run it is of; the others stay.
 * @returns false when there is nothing to put them into: no report, or one of another machine or other software
 */
export async function writeRun(path: string, run: BenchRun): Promise<boolean> {
  const { machine, measuredAt, load } = run;
  const fresh = run.rows.map((row): WrittenRow => ({ ...row, measuredAt, load }));
  let rows = fresh;
  if (!run.complete) {
    const before = await read(path);
    if (before === undefined || JSON.stringify(before.machine) !== JSON.stringify(machine)) return false;
    rows = merge(before.rows, fresh);
  }
  await writeDurable(path, `${JSON.stringify({ machine, rows } satisfies Report, null, 2)}\n`);
  return true;
}

/** Rows of a measurement stay together, where they were. */
function merge(before: readonly WrittenRow[], fresh: readonly WrittenRow[]): WrittenRow[] {
  const rows: WrittenRow[] = [];
  const left = new Set(fresh);
  for (const row of before) {
    const own = fresh.filter((candidate) => measurementOf(candidate) === measurementOf(row));
    if (own.length === 0) rows.push(row);
    for (const one of own) if (left.delete(one)) rows.push(one);
  }
  return [...rows, ...left];
}

const measurementOf = ({ name }: Row): string => name.slice(0, name.indexOf('/'));

async function read(path: string): Promise<Report | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Report;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
