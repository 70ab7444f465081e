import { Command, Option } from 'commander';
import { registerAuth } from './commands/auth.ts';
import { registerCompletion } from './commands/completion.ts';
import { registerConnect } from './commands/connect.ts';
import { registerExec } from './commands/exec.ts';
import { registerFork } from './commands/fork.ts';
import { registerImages } from './commands/images.ts';
import { registerKeys } from './commands/keys.ts';
import { registerObservation } from './commands/observation.ts';
import { registerPause } from './commands/pause.ts';
import { registerPull } from './commands/pull.ts';
import { registerRun } from './commands/run.ts';
import { registerSandboxes } from './commands/sandboxes.ts';
import { registerSnapshots } from './commands/snapshots.ts';
import { registerStart } from './commands/start.ts';
import { registerTemplates } from './commands/templates.ts';
import { registerTransfer } from './commands/transfer.ts';
import { HOST_COMMANDS } from './host-commands.ts';

/** The whole command line of `aenv`, host commands included by name. */
export function createProgram(version: string): Command {
  const program = new Command('aenv')
    .description('Isolated Linux microVMs for agents and their tools.')
    .version(version)
    .enablePositionalOptions()
    .option('--url <url>', 'address of the server; also AENV_URL')
    .option('--api-key <key>', 'API key; better in AENV_API_KEY or stored by `aenv auth`')
    .showHelpAfterError('(see --help)')
    .exitOverride();
  registerStart(program);
  registerExec(program);
  registerConnect(program);
  registerRun(program);
  registerSandboxes(program);
  registerPause(program);
  registerFork(program);
  registerSnapshots(program);
  registerTransfer(program);
  registerPull(program);
  registerTemplates(program);
  registerImages(program);
  registerObservation(program);
  registerKeys(program);
  registerAuth(program);
  registerCompletion(program);
  program.commands.forEach(acceptGlobalOptions);
  for (const { name, summary } of HOST_COMMANDS) {
    program
      .command(name)
      .summary(summary)
      .helpCommand(false)
      .allowUnknownOption()
      .action(() => {
        program.error(`aenv: ${name} is a command of the host: call it through the launcher ./aenv`, { exitCode: 2 });
      });
  }
  return program;
}

/** The options of the program may also stand behind the command, where people look for them last. */
function acceptGlobalOptions(command: Command): void {
  command.addOption(new Option('--url <url>').hideHelp()).addOption(new Option('--api-key <key>').hideHelp());
  command.commands.forEach(acceptGlobalOptions);
}
