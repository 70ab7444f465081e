import type { CompatHost } from './host.ts';

/** What a user does with a client, as one row of the table. */
export interface Scenario<Bed> {
  /** the row; unique within a table */
  readonly name: string;
  /** first version of the client that can do it; the columns before it are empty */
  readonly since?: string;
  run(bed: Bed): Promise<void>;
}

/** Rows under one heading. */
export interface Group<Bed> {
  readonly title: string;
  readonly scenarios: readonly Scenario<Bed>[];
}

/** One column: a published client, or one way to lead it here. */
export interface Column<Bed> {
  /** heading of the column */
  readonly title: string;
  /** of the client, `MAJOR.MINOR.PATCH` */
  readonly version: string;
  /** one of those that run with all other tests; `make compat` runs all columns */
  readonly always?: boolean;
  /** what its scenarios share; made before the first one, on a node of its own */
  open(host: CompatHost): Bed | Promise<Bed>;
  close?(bed: Bed): Promise<void>;
}

/** One client over several columns, with the same rows in each. */
export interface Table<Bed> {
  readonly client: string;
  readonly intro: string;
  readonly groups: readonly Group<Bed>[];
  readonly columns: readonly Column<Bed>[];
}

/** Whether a scenario is one of that version. */
export function applies(scenario: Pick<Scenario<never>, 'since'>, version: string): boolean {
  return scenario.since === undefined || compareVersions(version, scenario.since) >= 0;
}

/** Below 0 when `a` is the older one. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  for (let place = 0; place < 3; place++) {
    const difference = (left?.[place] ?? 0) - (right?.[place] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
