import type { RestoreEvent } from './restore-api.ts';

/**
 * The part of envd that only the host may use. The proxy answers 404 for these paths from outside, and envd itself asks
 * for the host secret: the first POST /init sets it, before any user code runs; every later call must bring it.
 */
export const HOST_SECRET_HEADER = 'x-aenv-host-secret';

/** Answer header of POST /init: the guest's /proc/sys/kernel/random/boot_id. */
export const BOOT_ID_HEADER = 'x-aenv-boot-id';

/** Answer header of POST /init: what each of its steps took, in the form of Server-Timing (W3C), in `ms`. */
export const STEPS_HEADER = 'server-timing';

/**
 * The steps of POST /init, in their order; `kernel` is time and entropy, `access` secret, token and variables, `release`
 * that connections from outside are broken and programs go on. `guest` is all of it, from when the guest's kernel received
 * the call.
 */
export const INIT_STEPS = ['kernel', 'drives', 'access', 'identity', 'release', 'guest'] as const;

/** Answer header of POST /init that let programs go on: how many hooks there are for its event. */
export const HOOKS_HEADER = 'x-aenv-hooks';

/** Paths of envd that must never be reachable through the proxy. */
export const HOST_ONLY_PATHS: readonly string[] = [
  '/init',
  '/freeze',
  '/unfreeze',
  '/collapse',
  '/fsfreeze',
  '/fsthaw',
  '/upgrade',
  '/observe',
  '/hooks',
  '/sync',
];

/**
 * Body of POST /init -> 204 with X-Envd-Version and, unless `capture`, X-Aenv-Boot-Id, with `letGo` X-Aenv-Hooks. Everything is optional; what is absent stays as it
 * is, `envVars` replaces the user's variables as a set. 401 without the right host secret.
 */
export interface InitRequest {
  readonly envVars?: Readonly<Record<string, string>>;
  /** clients' token for X-Access-Token; null opens envd to everyone who can reach it */
  readonly accessToken?: string | null;
  /** RFC 3339; the guest's clock is stepped to it */
  readonly timestamp?: string;
  readonly defaultUser?: string;
  readonly defaultWorkdir?: string;
  /** names the sandbox in the guest: hostname, E2B_SANDBOX_ID and E2B_TEMPLATE_ID */
  readonly sandboxId?: string;
  readonly templateId?: string;
  readonly hostname?: string;
  /** 32 hexadecimal digits for /etc/machine-id; absent keeps what is there */
  readonly machineId?: string;
  /** 32 bytes of host entropy, base64, credited to the guest's kernel */
  readonly seed?: string;
  /**
   * The guest continues a captured one: connections from outside, which are of somebody else's past, are broken. All
   * programs stand still until they are let go on.
   */
  readonly event?: RestoreEvent;
  /**
   * With an event: when all else is done, programs go on, and the answer has the number of hooks. The same call once more,
   * which has the same seed, breaks no connections: programs may have made new ones. Absent: POST /unfreeze comes later.
   */
  readonly letGo?: boolean;
  /**
   * From now on the host secret: a guest that continues a captured one gets its own. The call brings the one before, or,
   * when it is repeated because its answer was lost, already this one.
   */
  readonly hostSecret?: string;
  /**
   * The guest is about to be captured: it loads what the first call of a client would have to wait for, and makes nothing
   * that clones must not share. The answer has no boot id, since the kernel makes that when it is first read.
   */
  readonly capture?: boolean;
  /** Drives that are mounted now, unless they are already. 422 with the reason when one cannot be. */
  readonly drives?: readonly GuestDrive[];
}

/** An attached drive, as the guest is told of it. */
export interface GuestDrive {
  /** label of its file system, and its name on the machine */
  readonly label: string;
  /** absolute; folders that are missing are made */
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** relative: the folder of the drive that is shown there; absent: all of it */
  readonly subPath?: string;
}

/**
 * `CONNECT 127.0.0.1:PORT` with the host secret opens a byte tunnel to a port of the guest's loopback: the proxy uses it
 * when nothing listens on the guest's outer address. Answers 200, 401 without the secret, 502 when the port is closed.
 */
export const TUNNEL_HOST = '127.0.0.1';

/**
 * `GET /observe?after=CURSOR` with the host secret -> 200 GuestReport, 401 without. One call gives all that the host
 * writes down of a running guest, so that looking at it costs the guest one short answer.
 */
export const OBSERVE_PATH = '/observe';

/**
 * `POST /sync` with the host secret -> 204 when all that the guest's file systems had in memory is on their disks, 401
 * without. For a disk that is about to be kept without the memory.
 */
export const SYNC_PATH = '/sync';

export interface GuestReport {
  /** for the next call; one of another run of envd counts as none */
  readonly cursor: string;
  /** events after the given cursor that are forgotten already */
  readonly lost: number;
  /** as GET /metrics gives them; the load is that since the host's last look */
  readonly metrics: {
    readonly cpu_count: number;
    readonly cpu_used_pct: number;
    readonly mem_total: number;
    readonly mem_used: number;
    readonly mem_cache: number;
    readonly disk_used: number;
    readonly disk_total: number;
  };
  readonly events: readonly GuestEvent[];
}

/**
 * A process that clients started has begun or ended. Arguments and variables may hold secrets, so only their number is
 * told. The age instead of a time keeps the guest's clock out of it.
 */
export interface GuestEvent {
  readonly kind: 'start' | 'end';
  /** `ms` before the answer */
  readonly age: number;
  readonly pid: number;
  /** the program as it was named, cut at GUEST_PROGRAM_MAX characters */
  readonly program: string;
  /** number of arguments */
  readonly args: number;
  /** only of an end: `exit status 0`, `signal: killed` */
  readonly status?: string;
}

export const GUEST_PROGRAM_MAX = 128;
/** Events that a guest remembers, and the most that one report holds. */
export const GUEST_EVENTS_MAX = 512;
