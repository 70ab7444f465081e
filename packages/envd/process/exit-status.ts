import { constants } from 'node:os';

/** How a process ended. */
export type ExitStatus = { readonly code: number } | { readonly signal: number };

export interface EndReport {
  readonly exitCode: number;
  readonly exited: boolean;
  readonly status: string;
  readonly error?: string;
}

// The words of strsignal(3), which clients show to people and compare with.
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  SIGHUP: 'hangup',
  SIGINT: 'interrupt',
  SIGQUIT: 'quit',
  SIGILL: 'illegal instruction',
  SIGTRAP: 'trace/breakpoint trap',
  SIGABRT: 'aborted',
  SIGBUS: 'bus error',
  SIGFPE: 'floating point exception',
  SIGKILL: 'killed',
  SIGUSR1: 'user defined signal 1',
  SIGSEGV: 'segmentation fault',
  SIGUSR2: 'user defined signal 2',
  SIGPIPE: 'broken pipe',
  SIGALRM: 'alarm clock',
  SIGTERM: 'terminated',
};

/** The report as E2B's clients read it: a killed process has no exit code, which they see as -1. */
export function describeExit(status: ExitStatus): EndReport {
  if ('code' in status) {
    const text = `exit status ${status.code}`;
    return { exitCode: status.code, exited: true, status: text, ...(status.code === 0 ? {} : { error: text }) };
  }
  const text = `signal: ${describeSignal(status.signal)}`;
  return { exitCode: -1, exited: false, status: text, error: text };
}

function describeSignal(number: number): string {
  const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
  return (name === undefined ? undefined : DESCRIPTIONS[name]) ?? `signal ${number}`;
}
