import { TestDaemon } from '../../tests/harness/daemon.ts';

const START_MS = 600_000;
const PATIENCE_MS = 600_000;

/**
 * Has the template `base` captured, which is done once for each state of what a machine boots: tests with limits of their
 * own do not wait for it then.
 */
export async function captureBase(): Promise<void> {
  const boots = process.env.AENV_TEST_BOOTS;
  // It is no machine of a test.
  delete process.env.AENV_TEST_BOOTS;
  try {
    await using daemon = await TestDaemon.start({ startMs: START_MS });
    const headers = { 'content-type': 'application/json', 'x-api-key': daemon.apiKey };
    const body = JSON.stringify({ templateID: 'base', timeout: 600 });
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const answer = await fetch(`${daemon.url}/v2/sandboxes`, { method: 'POST', headers, body, signal });
    if (answer.status !== 201) throw new Error(`no sandbox of base: ${answer.status} ${await answer.text()}`);
  } finally {
    if (boots !== undefined) process.env.AENV_TEST_BOOTS = boots;
  }
}
