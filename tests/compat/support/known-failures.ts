import { readFileSync } from 'node:fs';

/** A cell of the table that fails, and why it is known to. */
export interface KnownFailure {
  readonly client: string;
  readonly column: string;
  readonly scenario: string;
  readonly reason: string;
}

export const KNOWN_FAILURES_FILE = 'tests/compat/known-failures.json';

/** The committed list. It may only shrink: tests/compat/known-failures.test.ts holds it to that. */
export function readKnownFailures(text = readFileSync(KNOWN_FAILURES_FILE, 'utf8')): readonly KnownFailure[] {
  return JSON.parse(text) as readonly KnownFailure[];
}

/** One name for a cell, to compare lists by. */
export function cellName({ client, column, scenario }: Omit<KnownFailure, 'reason'>): string {
  return `${client} ${column}: ${scenario}`;
}
