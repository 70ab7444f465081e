import type { LoadSample, LogQuery, SandboxLogEntry, SandboxObservations } from '../../sandboxes/observe/contract.ts';

/** Observations that a test puts there, without anything that is observed. */
export class FakeObservations implements SandboxObservations {
  readonly load = new Map<string, readonly LoadSample[]>();
  readonly entries = new Map<string, readonly SandboxLogEntry[]>();
  readonly queries: LogQuery[] = [];

  samples(sandboxId: string, from = 0, to = Number.POSITIVE_INFINITY): readonly LoadSample[] | undefined {
    return this.load.get(sandboxId)?.filter(({ at }) => at >= from && at <= to);
  }

  latest(sandboxId: string): LoadSample | undefined {
    return this.load.get(sandboxId)?.at(-1);
  }

  logs(sandboxId: string, query: LogQuery): readonly SandboxLogEntry[] | undefined {
    this.queries.push(query);
    return this.entries.get(sandboxId);
  }
}
