import type { Command } from 'commander';
import { openControlPlane, openEnvd } from '../client/session.ts';
import { CliError } from '../output/cli-error.ts';
import { execSession, shellExitCode } from '../terminal/exec-session.ts';
import { terminalSession } from '../terminal/shell-session.ts';
import { envOption, globalFlags } from './options.ts';

export interface ExecFlags {
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly user?: string;
  readonly cwd?: string;
  readonly env: Record<string, string>;
}

/** The options that `exec` and `run` share. */
export function addExecOptions(command: Command): Command {
  return command
    .option('-i, --interactive', 'pass standard input on')
    .option('-t, --tty', 'give the command a terminal')
    .option('-u, --user <name>', 'user to run as')
    .option('-w, --cwd <path>', 'working directory')
    .addOption(envOption());
}

export function registerExec(program: Command): void {
  addExecOptions(
    program
      .command('exec')
      .summary('run a command in a sandbox')
      .description(
        'Runs a command in a sandbox, without a shell in between. Its exit code is passed on: 128 + n for a signal, 127 ' +
          'when it does not exist, 126 when it cannot be run, 125 when the command never started.',
      )
      .passThroughOptions()
      .argument('<id>', 'id of the sandbox')
      .argument('<command...>', 'program and its arguments'),
  ).action(async (id: string, words: string[], flags: ExecFlags, command: Command) => {
    const api = await asPlatformFailure(() => openControlPlane(globalFlags(command)));
    const envd = await asPlatformFailure(() => openEnvd(api, id, flags.user));
    process.exitCode = await execute(api, id, envd, withoutSeparator(words), flags);
  });
}

/** As `run` has it, `--` may stand before the command; commander takes it away only where it comes before the id. */
export function withoutSeparator(words: readonly string[]): readonly string[] {
  return words[0] === '--' ? words.slice(1) : words;
}

export async function execute(
  api: Awaited<ReturnType<typeof openControlPlane>>,
  id: string,
  envd: Awaited<ReturnType<typeof openEnvd>>,
  words: readonly string[],
  flags: ExecFlags,
): Promise<number> {
  const [cmd, ...args] = words;
  if (cmd === undefined) throw new CliError('no command given', undefined, 2);
  const cwd = flags.cwd === undefined ? {} : { cwd: flags.cwd };
  if (flags.tty === true) {
    return shellExitCode(await terminalSession(api, id, envd, { envs: flags.env, ...cwd, command: [cmd, ...args] }));
  }
  const interactive = flags.interactive === true;
  const status = await execSession(
    envd,
    { cmd, args, envs: flags.env, ...cwd, stdin: interactive },
    {
      ...(interactive ? { stdin: process.stdin } : {}),
      stdout: process.stdout,
      stderr: process.stderr,
    },
  );
  return shellExitCode(status);
}

/** Failures before the command ran get a code of their own, so that they are not taken for the command's. */
export async function asPlatformFailure<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof CliError && error.exitCode === 1) {
      throw new CliError(error.message, error.remediation, 125);
    }
    throw error;
  }
}
