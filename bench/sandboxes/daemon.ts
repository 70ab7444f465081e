import { TestDaemon } from '../../tests/harness/daemon.ts';

const START_MS = 120_000;

/** A daemon for one measurement, with the settings of an installed one but a home, a runtime folder and a port of its own. */
export function openDaemon(): Promise<TestDaemon> {
  return TestDaemon.start({ startMs: START_MS });
}
