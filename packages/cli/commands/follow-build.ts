import { setTimeout as sleep } from 'node:timers/promises';
import type { BuildRef, ControlPlane } from '../client/control-plane.ts';
import { CliError } from '../output/cli-error.ts';
import { printable } from '../output/table.ts';

/** Text of the server with its lines, and without what a terminal would take for commands. */
const visible = (text: string) => text.split('\n').map(printable).join('\n');

/** How long to wait for news of a build. */
const POLL_MS = 500;

/**
 * Follows a build to its end; its log goes to standard error.
 * @throws CliError with the reason when the build fails
 */
export async function followBuild(api: ControlPlane, ref: BuildRef): Promise<void> {
  for (let read = 0; ; ) {
    const { status, logEntries, reason } = await api.buildStatus(ref, read);
    for (const { level, message } of logEntries) {
      console.error(visible(level === 'info' ? message : `${level}: ${message}`));
    }
    read += logEntries.length;
    if (logEntries.length > 0) continue;
    if (status === 'error') throw new CliError(`the build failed: ${visible(reason?.message ?? 'no reason given')}`);
    if (status === 'ready') return;
    await sleep(POLL_MS);
  }
}
