import type { Command } from 'commander';
import { openControlPlane, openEnvd } from '../client/session.ts';
import { shellExitCode } from '../terminal/exec-session.ts';
import { terminalSession } from '../terminal/shell-session.ts';
import { globalFlags, timeoutOption } from './options.ts';

export function registerConnect(program: Command): void {
  program
    .command('connect')
    .alias('cn')
    .summary('open a shell in a sandbox')
    .description(
      'Opens a shell in a sandbox, resumes it before if it is paused, and keeps it alive while the shell is open. The exit code is that of the shell.',
    )
    .argument('<id>', 'id of the sandbox')
    .option('-u, --user <name>', 'user to run as')
    .addOption(timeoutOption())
    .action(async (id: string, flags: { user?: string; timeout: number }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const sandbox = await api.connect(id, flags.timeout);
      const envd = await openEnvd(api, sandbox, flags.user);
      process.exitCode = shellExitCode(await terminalSession(api, sandbox.sandboxID, envd, { envs: {} }));
    });
}
