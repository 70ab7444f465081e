import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isAlive } from '@aenv/platform/process/identity.ts';
import type { Config } from '../config/schema.ts';
import { countSandboxes } from './daemon/count-sandboxes.ts';
import { findDaemon } from './daemon/state.ts';
import { formatDuration, type Output } from './terminal/output.ts';

/**
 * `aenv down`: asks exactly the daemon of this runtime folder to end, and waits until it has.
 * @throws AenvError `daemon_failed` when it still runs after the time
 */
export async function down(
  config: Pick<Config, 'home' | 'runtime'>,
  timeoutSeconds: number,
  env: NodeJS.ProcessEnv,
  output: Output,
): Promise<void> {
  const daemon = await findDaemon(config.runtime);
  if (daemon === undefined) {
    output.out('No daemon runs.');
    return;
  }
  const { pid } = daemon.process;
  const sandboxes = await countSandboxes(daemon.url, config.home, env);
  const started = Date.now();
  signalDaemon(pid);
  while (await isAlive(daemon.process)) {
    if (Date.now() - started > timeoutSeconds * 1000) {
      throw new AenvError('daemon_failed', `the daemon (pid ${pid}) has not ended within ${timeoutSeconds} s`, {
        remediation: `Wait longer with --timeout, or end it with \`kill -9 ${pid}\`: the next \`aenv up\` cleans up.`,
      });
    }
    await delay(20);
  }
  const many = sandboxes === 1 ? '1 sandbox' : `${sandboxes} sandboxes`;
  const what = sandboxes === undefined ? '' : ` and ${many}`;
  output.out(`Daemon${what} ended (${formatDuration(Date.now() - started)}).`);
}

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
