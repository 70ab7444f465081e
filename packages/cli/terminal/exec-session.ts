import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { EnvdClient, ExitStatus, StartOptions } from '../client/envd.ts';
import { CliError } from '../output/cli-error.ts';
import { InputPump } from './input-pump.ts';
import { writeAll } from './write.ts';

export interface ExecStreams {
  /** absent: the process reads from /dev/null */
  readonly stdin?: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** called once, with the pid in the sandbox */
  readonly onStart?: (pid: number) => void;
}

const END_OF_INPUT = new Uint8Array([4]);
const END_AGAIN_MS = 1_000;

/**
 * Runs one process in a sandbox with local streams and gives how it ended. The first SIGINT or SIGTERM here is passed on
 * as SIGTERM, the second one as SIGKILL.
 */
export async function execSession(envd: EnvdClient, options: StartOptions, streams: ExecStreams): Promise<ExitStatus> {
  let pid: number | undefined;
  let pump: InputPump | undefined;
  let interrupts = 0;
  const over = new AbortController();
  const onSignal = () => {
    interrupts++;
    if (pid !== undefined) void envd.signal(pid, interrupts === 1 ? 'SIGTERM' : 'SIGKILL').catch(() => {});
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  try {
    for await (const event of envd.start(options)) {
      switch (event.case) {
        case 'start':
          pid = event.value.pid;
          streams.onStart?.(pid);
          if (streams.stdin !== undefined) {
            pump = startPump(envd, pid, streams.stdin, options.size === undefined ? undefined : over.signal);
          }
          break;
        case 'data': {
          const { output } = event.value;
          if (output.case === 'stderr') await writeAll(streams.stderr, output.value);
          else if (output.case !== undefined) await writeAll(streams.stdout, output.value);
          break;
        }
        case 'end':
          return exitStatus(event.value);
      }
    }
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    pump?.stop();
    over.abort();
  }
  throw new CliError('the connection ended before the process did', 'Check the sandbox with `aenv get ID`.', 125);
}

/** The code that a shell would give: 128 + n for a signal. */
export function shellExitCode(status: ExitStatus): number {
  if (status.signal === undefined) return status.code & 0xff;
  return 128 + (SIGNAL_NUMBERS[status.signal] ?? 0);
}

/** @param terminal ends with the process; absent: there is none */
function startPump(envd: EnvdClient, pid: number, stdin: Readable, terminal: AbortSignal | undefined): InputPump {
  return new InputPump(
    stdin,
    (data) => envd.sendInput(pid, data, terminal === undefined ? 'stdin' : 'pty'),
    () => (terminal === undefined ? envd.closeStdin(pid) : endTerminal(envd, pid, terminal)),
  );
}

/**
 * A terminal has no end: programs take a character for it (VEOF of termios(3)), and only while they read. One that comes
 * before a shell has set its terminal up is lost.
 */
async function endTerminal(envd: EnvdClient, pid: number, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await envd.sendInput(pid, END_OF_INPUT, 'pty');
    await delay(END_AGAIN_MS, undefined, { signal: over }).catch(() => {});
  }
}

function exitStatus(end: { exitCode: number; exited: boolean; status: string }): ExitStatus {
  if (end.exited) return { code: end.exitCode };
  const signal = /^signal: (.+?)( \(core dumped\))?$/.exec(end.status)?.[1];
  return signal === undefined ? { code: end.exitCode } : { code: end.exitCode, signal };
}

/** Signal texts as Go's os package spells them, which envd uses, with their numbers on Linux (signal(7)). */
const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  hangup: 1,
  interrupt: 2,
  quit: 3,
  'illegal instruction': 4,
  'trace/breakpoint trap': 5,
  aborted: 6,
  'bus error': 7,
  'floating point exception': 8,
  killed: 9,
  'user defined signal 1': 10,
  'segmentation fault': 11,
  'user defined signal 2': 12,
  'broken pipe': 13,
  'alarm clock': 14,
  terminated: 15,
};
