import type { ControlPlane } from '../client/control-plane.ts';
import type { EnvdClient, ExitStatus } from '../client/envd.ts';
import { CliError } from '../output/cli-error.ts';
import { execSession } from './exec-session.ts';
import { rawMode } from './raw-mode.ts';

/** Shells in the order in which they are tried. */
const SHELLS = [
  { cmd: '/bin/bash', args: ['-i', '-l'] },
  { cmd: '/bin/sh', args: ['-i', '-l'] },
];

const KEEP_ALIVE_MS = 60_000;
const KEEP_ALIVE_SECONDS = 180;

export interface TerminalOptions {
  readonly envs: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** what to run instead of a shell */
  readonly command?: readonly [string, ...string[]];
}

/**
 * A terminal in the sandbox on the local terminal: raw mode, size and its changes, the local TERM. While it is open the
 * sandbox is kept alive. The local terminal is left as it was found.
 */
export async function terminalSession(
  api: ControlPlane,
  sandboxId: string,
  envd: EnvdClient,
  options: TerminalOptions,
): Promise<ExitStatus> {
  const keepAlive = setInterval(() => {
    void api.refresh(sandboxId, KEEP_ALIVE_SECONDS).catch(() => {});
  }, KEEP_ALIVE_MS);
  try {
    const [cmd, ...args] = options.command ?? [];
    if (cmd !== undefined) return await attach(envd, { cmd, args }, options);
    for (const shell of SHELLS) {
      try {
        return await attach(envd, shell, options);
      } catch (error) {
        if (!(error instanceof CliError && error.exitCode === 127)) throw error;
      }
    }
    throw new CliError('the sandbox has no shell', 'Run a program of it with `aenv exec -t ID PROGRAM`.', 127);
  } finally {
    clearInterval(keepAlive);
  }
}

async function attach(
  envd: EnvdClient,
  program: { cmd: string; args: readonly string[] },
  options: TerminalOptions,
): Promise<ExitStatus> {
  const { stdin, stdout } = process;
  using _raw = stdin.isTTY ? rawMode(stdin) : { [Symbol.dispose]() {} };
  let pid: number | undefined;
  const size = () => ({ cols: stdout.columns || 80, rows: stdout.rows || 24 });
  const onResize = () => {
    if (pid !== undefined) void envd.resize(pid, size()).catch(() => {});
  };
  stdout.on('resize', onResize);
  try {
    return await execSession(
      envd,
      {
        ...program,
        envs: { TERM: process.env.TERM ?? 'xterm-256color', LANG: 'C.UTF-8', ...options.envs },
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        stdin: true,
        size: size(),
      },
      {
        stdin,
        stdout,
        stderr: process.stderr,
        onStart: (started) => {
          pid = started;
          // The window may have changed while the process started.
          onResize();
        },
      },
    );
  } finally {
    stdout.off('resize', onResize);
  }
}
