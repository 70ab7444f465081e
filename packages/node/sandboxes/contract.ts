/** What the API asks of the lifecycle. Times are Dates here; seconds and RFC 3339 are the API's business. */

export interface CreateSandbox {
  /** id, alias or `alias:tag`, as the client sent it */
  readonly template: string;
  readonly timeoutSeconds: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly envVars: Readonly<Record<string, string>>;
  /** whether envd asks for a token */
  readonly secure: boolean;
  /** null: the client did not say, which means allowed */
  readonly allowInternetAccess: boolean | null;
  readonly network: SandboxNetwork;
}

export interface SandboxNetwork {
  readonly allowPublicTraffic: boolean;
  readonly maskRequestHost?: string;
  readonly httpsPorts: readonly number[];
}

/**
 *            envd answered           kill, expiry, shutdown
 * creating ----------------> running ----------------------> killing ------> ended
 *     |                        |                              ^                ^
 *     +---- killed meanwhile --|------------------------------+                |
 *     +---- a step failed -----|-----------------------------------------------+
 *                              +---- VM died, or the daemon did (found at the next start) ----> lost
 *
 * `ended` and `lost` are final and keep their reason in the ledger. All transitions: lifecycle/state.ts.
 */
export type SandboxState = 'creating' | 'running' | 'killing' | 'ended' | 'lost';

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

export interface ListQuery {
  /** all pairs must match */
  readonly metadata?: Readonly<Record<string, string>>;
  /** E2B's states: `running` covers creating, running and killing */
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
  /** Extends the end to now + timeout, never shortens it. */
  connect(
    sandboxId: string,
    timeoutSeconds: number,
  ): Promise<{ readonly view: SandboxView; readonly resumed: boolean }>;
  /** Sets the end to now + timeout, shorter allowed. */
  setTimeout(sandboxId: string, timeoutSeconds: number): Promise<void>;
  /** Only extends. */
  refresh(sandboxId: string, seconds: number): Promise<void>;
  kill(sandboxId: string): Promise<void>;
  /** Ends everything with the reason `shutdown` and stops the sweep. */
  close(): Promise<void>;
}
