import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isAlive } from '@aenv/platform/process/identity.ts';
import type { Config } from '../config/schema.ts';
import type { ShutdownReport } from '../sandboxes/shutdown/report.ts';
import { readShutdownReport } from './daemon/shutdown-report.ts';
import { findDaemon } from './daemon/state.ts';
import { formatDuration, type Output } from './terminal/output.ts';

/** What the daemon may take beyond the time for pauses: for those under way, and to give the host back. */
const MARGIN_SECONDS = 30;

/**
 * `aenv down`: asks exactly the daemon of this runtime folder to end, waits until it has, and tells what became of the
 * sandboxes.
 * @param timeoutSeconds default: as long as the daemon may take
 * @throws AenvError `daemon_failed` when it still runs after the time
 */
export async function down(
  config: Pick<Config, 'runtime' | 'shutdown'>,
  timeoutSeconds: number | undefined,
  output: Output,
): Promise<void> {
  const daemon = await findDaemon(config.runtime);
  if (daemon === undefined) {
    output.out('No daemon runs.');
    return;
  }
  const { pid } = daemon.process;
  const limit = timeoutSeconds ?? config.shutdown.timeoutSeconds + MARGIN_SECONDS;
  const started = Date.now();
  signalDaemon(pid);
  while (await isAlive(daemon.process)) {
    if (Date.now() - started > limit * 1000) {
      throw new AenvError('daemon_failed', `the daemon (pid ${pid}) has not ended within ${limit} s`, {
        remediation: `Wait longer with --timeout, or end it with \`kill -9 ${pid}\`: the next \`aenv up\` finds what it leaves.`,
      });
    }
    await delay(20);
  }
  output.out(`Daemon ended (${formatDuration(Date.now() - started)}).`);
  const report = await readShutdownReport(config.runtime, pid);
  if (report !== undefined) tell(report, output);
}

function tell({ paused, ended, failures, left }: ShutdownReport, output: Output): void {
  if (paused.length > 0) output.out(`Paused, to go on at the next start: ${many(paused.length)}.`);
  if (ended.length > 0) output.out(`Ended: ${many(ended.length)}.`);
  for (const { sandboxId, reason } of failures) output.out(`  ${sandboxId} could not be paused: ${reason}`);
  if (left.length > 0) output.out(`Not done in time, and found by the next start: ${left.join(', ')}.`);
}

const many = (count: number): string => (count === 1 ? '1 sandbox' : `${count} sandboxes`);

function signalDaemon(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ESRCH') return;
    if (code !== 'EPERM') throw error;
    throw new AenvError('host_unsupported', `the daemon (pid ${pid}) belongs to another user`, {
      remediation: 'Run the command as root.',
    });
  }
}
