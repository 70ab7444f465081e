import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { SnapshotName, SnapshotRecord } from '../store/snapshot-record.ts';
import type { DriveStart } from './drives/contract.ts';

/** What the API asks of the lifecycle. Times are Dates here; seconds and RFC 3339 are the API's business. */

export interface CreateSandbox {
  /** of a template or a snapshot: id, alias or `alias:tag`, as the client sent it */
  readonly template: string;
  /** whether it boots its template's disk also where there is a captured machine to continue */
  readonly cold?: boolean;
  /** attached besides its root; only with `cold` */
  readonly drives?: readonly DriveStart[];
  readonly timeoutSeconds: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly envVars: Readonly<Record<string, string>>;
  /** whether envd asks for a token */
  readonly secure: boolean;
  /** null: the client did not say, which means allowed */
  readonly allowInternetAccess: boolean | null;
  readonly network: SandboxNetwork;
  /** what the end of the time to live does */
  readonly onTimeout: 'kill' | 'pause';
  /** whether a pause at that end keeps the memory */
  readonly pauseMemory: boolean;
  /** whether traffic resumes it */
  readonly autoResume: boolean;
}

export interface SandboxNetwork {
  readonly allowPublicTraffic: boolean;
  readonly maskRequestHost?: string;
  readonly httpsPorts: readonly number[];
}

/**
 *            envd answered           kill, expiry, shutdown
 * creating ----------------> running ----------------------> killing ------> ended
 *     |                      ^  |  |                          ^  ^               ^
 *     |              resumed |  |  | pause                    |  |               |
 *     |                      |  |  v                          |  |               |
 *     |               resuming  |  pausing -----> paused -----+  |               |
 *     |                 ^       |                   |  kill      |               |
 *     |                 +-------|---- connect ------+            |               |
 *     +---- killed meanwhile ---|--------------------------------+               |
 *     +---- a step failed ------|------------------------------------------------+
 *                               +---- VM died, or the daemon did (found at the next start) ----> lost
 *
 * A pause that fails leads back to `running`, a resume that fails to `paused`: nothing is lost by either. `paused` outlives
 * the daemon. `ended` and `lost` are final and keep their reason in the ledger. All transitions: lifecycle/state.ts.
 */
export type SandboxState = 'creating' | 'running' | 'pausing' | 'paused' | 'resuming' | 'killing' | 'ended' | 'lost';

export type EndReason = 'killed' | 'expired' | 'shutdown' | 'create_failed' | 'vm_died' | 'daemon_crashed';

export interface SandboxView {
  readonly sandboxId: string;
  readonly templateId: string;
  readonly alias?: string;
  readonly state: SandboxState;
  readonly startedAt: Date;
  readonly endAt: Date;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly envdVersion: string;
  readonly envdAccessToken?: string;
  readonly trafficAccessToken?: string;
  readonly allowInternetAccess: boolean | null;
  readonly network: SandboxNetwork;
  readonly onTimeout: 'kill' | 'pause';
  readonly autoResume: boolean;
}

export interface PauseOptions {
  /** false: only the disk is kept, and the next resume boots it */
  readonly memory: boolean;
}

export interface ResumeOptions extends PauseOptions {
  /** what its next end does from now on; as before when absent */
  readonly onTimeout?: 'kill' | 'pause';
}

export interface ForkOptions {
  /** how many children */
  readonly count: number;
  /** time to live of each */
  readonly timeoutSeconds: number;
}

/** A child of a fork, or why it could not be started. */
export type Fork = { readonly view: SandboxView } | { readonly error: AenvError };

export interface ListQuery {
  /** all pairs must match */
  readonly metadata?: Readonly<Record<string, string>>;
  /** E2B's states: `paused` is that one alone, `running` covers all others that are not over */
  readonly states: readonly ('running' | 'paused')[];
  readonly startedAfter?: Date;
  /** template id or alias; an unknown one matches nothing */
  readonly template?: string;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** opaque, from the page before */
  readonly nextToken?: string;
}

export interface ListPage {
  readonly items: readonly SandboxView[];
  /** absent on the last page, also when it is exactly full */
  readonly nextToken?: string;
  readonly totalRunning: number;
}

/**
 * Every operation runs to its end once begun: a client that goes away cancels nothing half way. Operations on one
 * sandbox are serialised. Unknown and ended ids throw `sandbox_not_found`; for an ended one the message and the details
 * say the state, the reason and when.
 */
export interface SandboxService {
  create(options: CreateSandbox): Promise<SandboxView>;
  get(sandboxId: string): SandboxView;
  /** @throws AenvError `invalid_request` for a bad token */
  list(query: ListQuery): ListPage;
  /**
   * Extends the end to now + timeout, never shortens it. A paused sandbox is resumed first, one that is just being paused
   * or resumed is waited for.
   */
  connect(
    sandboxId: string,
    timeoutSeconds: number,
    options?: PauseOptions,
  ): Promise<{ readonly view: SandboxView; readonly resumed: boolean }>;
  /** Sets the end to now + timeout, shorter allowed. */
  setTimeout(sandboxId: string, timeoutSeconds: number): Promise<void>;
  /** Only extends. */
  refresh(sandboxId: string, seconds: number): Promise<void>;
  kill(sandboxId: string): Promise<void>;
  /**
   * Stops it and keeps all of it; returns when that is durable and nothing of it runs.
   * @throws AenvError `sandbox_not_running` when it does not run, `sandbox_paused` when it is paused already
   */
  pause(sandboxId: string, options: PauseOptions): Promise<void>;
  /** @throws AenvError `sandbox_not_paused` when it runs */
  resume(sandboxId: string, timeoutSeconds: number, options?: ResumeOptions): Promise<SandboxView>;
  /**
   * Captures it while it stands still for a moment, lets it go on, and starts children from what was captured, each a
   * sandbox of its own: new id, tokens and time to live. One entry for each child.
   * @throws AenvError when no child was attempted: `sandbox_not_running`, `sandbox_paused`, `capacity_exhausted`, `no_space`
   */
  fork(sandboxId: string, options: ForkOptions): Promise<readonly Fork[]>;
  /**
   * Keeps it as a snapshot, under a name that moves to it where one is given, and lets it go on. Returns when all of the
   * snapshot is durable.
   * @throws AenvError `sandbox_not_running`, `sandbox_paused`, `no_space`; `invalid_request` for the name of a template
   */
  snapshot(sandboxId: string, name?: SnapshotName): Promise<SnapshotRecord>;
}
