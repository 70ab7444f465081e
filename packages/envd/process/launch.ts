import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants as fsConstants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as osConstants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { User } from '../users/users.ts';
import { ControlChannel } from './control-channel.ts';
import type { ExitStatus } from './exit-status.ts';
import { holdsNul, launchError, spawnError } from './launch-error.ts';
import { type Spawned, type StandBy, standByRequest } from './stand-by.ts';

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export interface LaunchOptions {
  /** path of the native program */
  readonly native: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly user: User;
  readonly cwd: string;
  /** whether stdin is a pipe; otherwise it is /dev/null. A terminal always has input. */
  readonly stdin: boolean;
  readonly terminal?: TerminalSize;
  /** where a process may wait to become this one; not for one with a terminal */
  readonly standBy?: StandBy;
}

/** A program that runs: its exec has succeeded. */
export interface Launched {
  /** also the id of its session and process group */
  readonly pid: number;
  readonly input: Writable | undefined;
  readonly outputs: readonly { readonly kind: 'stdout' | 'stderr' | 'pty'; readonly stream: Readable }[];
  /** Resolves when the process has ended and was reaped; its output may still be on the way. */
  readonly exited: Promise<ExitStatus>;
  /** Only with a terminal. */
  readonly resize: ((size: TerminalSize) => void) | undefined;
}

/**
 * Starts a program as a user through the native applet, in a session of its own, and returns when it executes.
 * @throws AenvError `program_not_found`, `program_not_executable`, `arguments_too_long`, `path_invalid`,
 *   `invalid_request`, `internal`
 */
export async function launch(options: LaunchOptions): Promise<Launched> {
  const { standBy, ...direct } = options;
  const waiting = options.terminal === undefined ? standBy?.take() : undefined;
  const { child, control: socket } = waiting ?? start(direct);
  const control = new ControlChannel(socket);
  const exited = exitOf(child);
  // Whoever launches sees a failure to start by the control channel; nobody else may be waiting for the exit then.
  exited.catch(() => {});
  try {
    if (options.terminal !== undefined) return await attachTerminal(child, control, exited, options);
    if (waiting !== undefined) socket.write(requestOf(options));
    const line = await (waiting === undefined ? control.next() : nextInTime(control, waiting));
    // Somebody has ended or stopped it while it waited; nothing of the program has run.
    if (line === undefined && waiting !== undefined) {
      control.close();
      return await launch(direct);
    }
    return await attachPipes(child, control, line, exited, options);
  } catch (error) {
    control.close();
    throw error;
  }
}

/** The next line of a program that is killed when it does not say anything in time. */
async function nextInTime(control: ControlChannel, { child, patienceMs }: { child: ChildProcess; patienceMs: number }) {
  let last: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // Where this process itself had no turn for so long, what was said meanwhile is heard first.
    last = setImmediate(() => child.kill('SIGKILL'));
  }, patienceMs);
  try {
    return await control.next();
  } finally {
    clearTimeout(timer);
    clearImmediate(last);
  }
}

function argvOf({ user, cwd, terminal, stdin, command, args }: LaunchOptions): string[] {
  const argv = ['spawn', '--uid', `${user.uid}`, '--gid', `${user.gid}`, '--groups', user.groups.join(',')];
  argv.push('--cwd', cwd);
  if (terminal !== undefined) argv.push('--pty', `${terminal.cols}x${terminal.rows}`);
  else argv.push('--pipes', ...(stdin ? ['--stdin'] : []));
  return [...argv, '--', command, ...args];
}

function requestOf(options: LaunchOptions): Buffer {
  const request = standByRequest(argvOf(options), options.environment);
  if (request === undefined) throw holdsNul();
  return request;
}

function start(options: LaunchOptions): Spawned {
  const plain = options.terminal === undefined ? 'ignore' : 'pipe';
  let child: ChildProcess;
  try {
    child = spawn(options.native, argvOf(options), {
      stdio: [plain, plain, 'ignore', 'pipe'],
      env: options.environment,
      cwd: '/',
    });
  } catch (error) {
    throw spawnError(error);
  }
  const control = child.stdio[3];
  if (!(control instanceof Socket)) throw new AenvError('internal', 'the native program has no control socket');
  return { child, control };
}

function exitOf(child: ChildProcess): Promise<ExitStatus> {
  return new Promise((resolve, reject) => {
    child.on('exit', (code, signal) => {
      resolve(signal === null ? { code: code ?? 0 } : { signal: osConstants.signals[signal] });
    });
    child.on('error', (error) => reject(spawnError(error)));
  });
}

async function attachPipes(
  child: ChildProcess,
  control: ControlChannel,
  line: readonly string[] | undefined,
  exited: Promise<ExitStatus>,
  options: LaunchOptions,
): Promise<Launched> {
  const opened: Socket[] = [];
  try {
    const pid = child.pid;
    if (line?.[0] !== 'pipes' || pid === undefined) throw await failure(line, exited, options);
    const [, input, output, errors] = line;
    const stdin = options.stdin ? openPipe(pid, input, 'write') : undefined;
    if (stdin !== undefined) opened.push(stdin);
    const stdout = openPipe(pid, output, 'read');
    opened.push(stdout);
    const stderr = openPipe(pid, errors, 'read');
    opened.push(stderr);
    control.send('go');
    const trouble = await control.next();
    if (trouble !== undefined) throw await failure(trouble, exited, options);
    control.close();
    return {
      pid,
      input: stdin,
      outputs: [
        { kind: 'stdout', stream: stdout },
        { kind: 'stderr', stream: stderr },
      ],
      exited,
      resize: undefined,
    };
  } catch (error) {
    for (const pipe of opened) pipe.destroy();
    throw error;
  }
}

async function attachTerminal(
  child: ChildProcess,
  control: ControlChannel,
  pumpExit: Promise<ExitStatus>,
  options: LaunchOptions,
): Promise<Launched> {
  const line = await control.next();
  if (line?.[0] !== 'pid' || child.stdin === null || child.stdout === null)
    throw await failure(line, pumpExit, options);
  child.stdin.on('error', () => {});
  return {
    pid: Number(line[1]),
    input: child.stdin,
    outputs: [{ kind: 'pty', stream: child.stdout }],
    exited: terminalExit(control, pumpExit),
    resize: ({ cols, rows }) => control.send(`size ${cols} ${rows}`),
  };
}

async function terminalExit(control: ControlChannel, pumpExit: Promise<ExitStatus>): Promise<ExitStatus> {
  for (let line = await control.next(); line !== undefined; line = await control.next()) {
    if (line[0] === 'exit') return { code: Number(line[1]) };
    if (line[0] === 'signal') return { signal: Number(line[1]) };
  }
  // The pump itself was killed, and the terminal with it.
  return pumpExit;
}

/** Opens the far end of one of the applet's pipes: a new description of the same pipe (proc_pid_fd(5)). */
function openPipe(pid: number, number: string | undefined, direction: 'read' | 'write'): Socket {
  const access = direction === 'read' ? fsConstants.O_RDONLY : fsConstants.O_WRONLY;
  const fd = openSync(`/proc/${pid}/fd/${Number(number)}`, access | fsConstants.O_NONBLOCK);
  try {
    const socket = new Socket({ fd, readable: direction === 'read', writable: direction === 'write' });
    // A reader that goes away is no fault of ours: what was written to it is lost, as in any pipe.
    socket.on('error', () => {});
    return socket;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

async function failure(
  line: readonly string[] | undefined,
  exited: Promise<ExitStatus>,
  options: LaunchOptions,
): Promise<AenvError> {
  if (line?.[0] === 'error') return launchError(line[1] ?? '', Number(line[2]), options);
  try {
    const status = await exited;
    return new AenvError('internal', `the native program ended before it started anything: ${JSON.stringify(status)}`);
  } catch (error) {
    return AenvError.from(error);
  }
}
