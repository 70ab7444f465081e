/**
 * How a guest that continues a captured one is brought up to date. Before the capture `POST /freeze` stops all programs
 * of the user, so that none of them runs on before the guest has its time, its entropy and its names. After it come
 * `POST /init` with `event` and `letGo`, and, where there are hooks, `POST /hooks`. An envd from before there was `letGo`
 * is told by `POST /unfreeze` in between, as is one that goes on without having become another. All of these are for the
 * host only and ask for its secret.
 */
export const FREEZE_PATH = '/freeze';
export const UNFREEZE_PATH = '/unfreeze';
export const HOOKS_PATH = '/hooks';

/** Why a guest is continued: for a new sandbox of a template or snapshot, as the child of another one, after a pause. */
export type RestoreEvent = 'create' | 'fork' | 'resume';

export const RESTORE_EVENTS: readonly RestoreEvent[] = ['create', 'fork', 'resume'];

/** POST /freeze -> 200. A program in the middle of a long system call stops at its end. */
export interface FreezeAnswer {
  /** whether all have stopped */
  readonly frozen: boolean;
}

/** Body of POST /unfreeze -> 200 UnfreezeAnswer. Steps the clock, then all programs go on, unless they are to stay. May be repeated. */
export interface UnfreezeRequest {
  /** RFC 3339. After a POST /init, which told the time before, the clock only goes forward: a call may be late */
  readonly timestamp?: string;
  /** what stands still goes on standing still: for a guest that may have heard the time late, and for one that runs and is about to be frozen */
  readonly stay?: boolean;
  /** whose hooks are counted */
  readonly event?: RestoreEvent;
}

export interface UnfreezeAnswer {
  /** hooks that there are for the event */
  readonly hooks: number;
}

/** Body of POST /hooks -> 200 HooksAnswer, when the last hook has ended or time is over. */
export interface HooksRequest {
  readonly event: RestoreEvent;
  /** for all of them together; one that still runs then is killed with its process group, the rest do not begin */
  readonly timeoutMs: number;
}

export interface HooksAnswer {
  readonly hooks: readonly HookResult[];
}

export interface HookResult {
  /** file name in the folder of the event */
  readonly name: string;
  /** `exit status 0`, `signal: killed`, or why it did not begin */
  readonly status: string;
  readonly ok: boolean;
  readonly ms: number;
  /** the end of what it printed, both streams, at most HOOK_OUTPUT_MAX characters */
  readonly output: string;
}

/** Folders with the executables for the events, run in the order of their names. */
export const HOOK_FOLDERS: Readonly<Record<RestoreEvent, string>> = {
  resume: '/etc/aenv/on-resume.d',
  create: '/etc/aenv/on-fork.d',
  fork: '/etc/aenv/on-fork.d',
};

export const HOOKS_MAX = 64;
export const HOOK_OUTPUT_MAX = 4096;
