import { TestDaemon } from '../../tests/harness/daemon.ts';

const START_MS = 120_000;

/**
 * A daemon for one measurement, with the settings of an installed one but a home, a runtime folder and a port of its own.
 * @param capture false: sandboxes boot instead of continuing what was captured
 */
export function openDaemon(capture = true): Promise<TestDaemon> {
  return TestDaemon.start({ startMs: START_MS, env: { AENV_TEMPLATES_CAPTURE: String(capture) } });
}
