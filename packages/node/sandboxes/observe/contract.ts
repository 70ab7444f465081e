import type { HookResult } from '@aenv/contracts/envd/restore-api.ts';
import type { EndReason, SandboxState } from '../contract.ts';

/** One look at a running sandbox: sizes in bytes, `at` in `ms` since the epoch by the host's clock. */
export interface LoadSample {
  readonly at: number;
  readonly cpuCount: number;
  /** per cent of all its processors together since the sample before */
  readonly cpuUsedPct: number;
  readonly memUsed: number;
  readonly memTotal: number;
  readonly memCache: number;
  readonly diskUsed: number;
  readonly diskTotal: number;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface SandboxLogEntry {
  /** `ms` since the epoch; no two entries of a sandbox have the same, so that it serves as a cursor */
  readonly at: number;
  readonly level: LogLevel;
  /** who says it: lifecycle, process, hook or console */
  readonly logger: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface LogQuery {
  /** first moment when read forward, last one when read backward; `ms`, inclusive */
  readonly cursor?: number;
  readonly direction: 'forward' | 'backward';
  readonly limit: number;
  /** least level */
  readonly level?: LogLevel;
  /** part of the message, in any case */
  readonly search?: string;
}

/** What the lifecycle tells of its sandboxes. None of these throws or waits. */
export interface SandboxObserver {
  created(sandboxId: string, facts: Readonly<Record<string, string>>): void;
  /** Somebody waits for a sandbox to run or to be captured, until the result is disposed: looks give way. */
  starting(): Disposable;
  running(guest: ObservedGuest): void;
  /** What came of its hooks when it was continued. */
  hooksRan(sandboxId: string, hooks: readonly HookResult[]): void;
  endChanged(sandboxId: string, endAt: Date): void;
  /** It is being ended; nothing may be asked of its guest any more. */
  ending(sandboxId: string): void;
  over(sandboxId: string, state: SandboxState, reason: EndReason, message?: string): void;
}

export interface ObservedGuest {
  readonly sandboxId: string;
  readonly address: string;
  readonly hostSecret: string;
  /** file that the console of the VM goes to */
  readonly consoleLog: string;
}

/** What the API asks for. */
export interface SandboxObservations {
  /** The samples between two moments, oldest first; undefined when the sandbox does not run. */
  samples(sandboxId: string, from?: number, to?: number): readonly LoadSample[] | undefined;
  latest(sandboxId: string): LoadSample | undefined;
  /** Undefined when nothing is remembered of the sandbox. It is, for a while, also when the sandbox is over. */
  logs(sandboxId: string, query: LogQuery): readonly SandboxLogEntry[] | undefined;
}
