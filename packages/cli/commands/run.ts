import type { Command } from 'commander';
import { openControlPlane, openEnvd } from '../client/session.ts';
import { addExecOptions, asPlatformFailure, type ExecFlags, execute } from './exec.ts';
import { globalFlags, metadataOption, timeoutOption } from './options.ts';
import { startSandbox } from './start.ts';

type RunFlags = ExecFlags & { timeout: number; metadata: Record<string, string>; internet: boolean };

export function registerRun(program: Command): void {
  addExecOptions(
    program
      .command('run')
      .summary('start a sandbox, run one command in it, delete it')
      .description('Starts a sandbox, runs one command in it, and deletes it, however the command ends.')
      .usage('[options] <template> -- <command...>')
      .argument('<template>', 'id or alias of a template')
      .argument('<command...>', 'program and its arguments'),
  )
    .addOption(timeoutOption())
    .addOption(metadataOption())
    .option('--no-internet', 'no network access from the sandbox')
    .action(async (template: string, words: string[], flags: RunFlags, command: Command) => {
      const api = await asPlatformFailure(() => openControlPlane(globalFlags(command)));
      // Variables go to the command alone, not to the whole sandbox.
      const sandbox = await asPlatformFailure(() => startSandbox(api, template, { ...flags, env: {} }));
      try {
        const envd = await openEnvd(api, sandbox, flags.user);
        process.exitCode = await execute(api, sandbox.sandboxID, envd, words, flags);
      } finally {
        await api.kill(sandbox.sandboxID).catch((error: unknown) => {
          console.error(`aenv: ${sandbox.sandboxID} could not be deleted: ${String(error)}`);
        });
      }
    });
}
