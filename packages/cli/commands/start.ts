import type { Command } from 'commander';
import type { ControlPlane, SandboxInfo } from '../client/control-plane.ts';
import { EnvdClient } from '../client/envd.ts';
import { openControlPlane } from '../client/session.ts';
import { shellExitCode } from '../terminal/exec-session.ts';
import { terminalSession } from '../terminal/shell-session.ts';
import { envOption, globalFlags, metadataOption, timeoutOption } from './options.ts';

interface StartFlags {
  readonly detach?: boolean;
  readonly timeout: number;
  readonly env: Record<string, string>;
  readonly metadata: Record<string, string>;
  readonly internet: boolean;
}

export function registerStart(program: Command): void {
  program
    .command('start')
    .summary('start a sandbox and open a shell in it')
    .description(
      'Starts a sandbox from a template. With -d it prints the id and returns; else it opens a shell, and the sandbox ' +
        'lives on afterwards until its time is over.',
    )
    .argument('<template>', 'id or alias of a template')
    .option('-d, --detach', 'print the id and return')
    .addOption(timeoutOption())
    .addOption(envOption())
    .addOption(metadataOption())
    .option('--no-internet', 'no network access from the sandbox')
    .action(async (template: string, flags: StartFlags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const sandbox = await startSandbox(api, template, flags);
      console.log(sandbox.sandboxID);
      if (flags.detach === true) return;
      const envd = new EnvdClient(api.settings.url, sandbox);
      process.exitCode = shellExitCode(await terminalSession(api, sandbox.sandboxID, envd, { envs: {} }));
      console.error(`the sandbox lives on: aenv connect ${sandbox.sandboxID} | aenv rm ${sandbox.sandboxID}`);
    });
}

export async function startSandbox(
  api: ControlPlane,
  template: string,
  flags: Omit<StartFlags, 'detach'>,
): Promise<SandboxInfo> {
  return await api.create({
    templateID: template,
    timeout: flags.timeout,
    envVars: flags.env,
    metadata: flags.metadata,
    ...(flags.internet ? {} : { allow_internet_access: false }),
  });
}
