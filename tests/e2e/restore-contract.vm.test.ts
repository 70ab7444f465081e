import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HAZARD_NAMES } from '@aenv/node/host/selftest/hazards.ts';
import { aenv } from '../harness/cli.ts';
import { TestDaemon } from '../harness/daemon.ts';

interface Report {
  readonly ok: boolean;
  readonly error?: string;
  readonly hazards: readonly { readonly name: string; readonly status: string; readonly detail: readonly string[] }[];
}

/** One hook never ends, so all of it is waited for; the others may have to wait for a disk that others are filling. */
const HOOKS = { AENV_RESTORE_HOOKS_SECONDS: '10' };

let daemon: TestDaemon;
let report: Report;
before(async () => {
  daemon = await TestDaemon.start({ env: HOOKS });
  const env = { ...HOOKS, AENV_HOME: daemon.home, AENV_RUNTIME: daemon.runtime };
  const result = await aenv(daemon, ['selftest', 'restore', '--output', 'json'], { env, timeoutMs: 400_000 });
  assert.match(result.stderr, /with the daemon at/);
  report = JSON.parse(result.stdout.toString());
  assert.equal(result.code, report.ok ? 0 : 1, result.stderr);
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

test('the test goes through, and leaves no sandbox', async () => {
  assert.equal(report.error, undefined);
  assert.deepEqual(await (await daemon.api('GET', '/v2/sandboxes')).json(), []);
});

for (const name of HAZARD_NAMES) {
  test(name, () => {
    const finding = report.hazards.find((hazard) => hazard.name === name);
    assert.deepEqual([finding?.status, finding?.detail], ['ok', []], report.error);
  });
}
