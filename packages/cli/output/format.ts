import { CliError } from './cli-error.ts';
import { formatTable } from './table.ts';

export type OutputFormat = 'table' | 'json';

/** The asked format, or a table on a terminal and JSON in a pipe. */
export function chooseFormat(asked: string | undefined, isTerminal: boolean): OutputFormat {
  if (asked === undefined) return isTerminal ? 'table' : 'json';
  if (asked === 'table' || asked === 'json') return asked;
  throw new CliError(`unknown output format: ${asked}`, 'Use table or json.', 2);
}

export interface Listing<T> {
  readonly head: readonly string[];
  row(item: T): readonly string[];
}

/** Prints items as a table or as the JSON that the server gave. */
export function printList<T>(items: readonly T[], listing: Listing<T>, asked: string | undefined): void {
  if (chooseFormat(asked, process.stdout.isTTY === true) === 'json') {
    console.log(JSON.stringify(items, null, 2));
    return;
  }
  const rows = items.map((item) => listing.row(item));
  console.log(formatTable(listing.head, rows));
}

/** `2m 5s`, `3h 1m`; `-` for what is over. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds <= 0) return '-';
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
  return `${Math.floor(seconds / 3600)}h ${Math.floor((seconds % 3600) / 60)}m`;
}
