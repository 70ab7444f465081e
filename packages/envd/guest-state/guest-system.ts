import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { GuestDrive } from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { mountDrives } from '../drives/mount-drives.ts';
import { ResidentApplet } from '../native/applet.ts';
import { applyIdentity, type Identity, rehearseIdentity } from './identity.ts';

/** A moment by the host's clock, and the call that brought it. */
export interface HostTime {
  /** since the epoch, a decimal number */
  readonly seconds: string;
  /** nanoseconds of CLOCK_MONOTONIC at which the call was read */
  readonly at: bigint;
  /** the host's, of the connection that it came by: its kernel may have had it for long by then */
  readonly port: number;
}

/** What a clone must not run without; what is absent stays as it is. */
export interface Renewal {
  /** the clock is stepped to what it is by now */
  readonly time?: HostTime | undefined;
  /** fresh entropy, mixed into the kernel's generator, which reseeds */
  readonly seed?: Uint8Array | undefined;
}

/** The parts of the guest that the host changes; tests put something harmless in its place. */
export interface GuestSystem {
  /**
   * Brings the kernel up to date.
   * @returns how long the call that brought the time had waited before it was read, `ms`; 0 without a time
   */
  renew(renewal: Renewal): Promise<number>;
  /**
   * Stops all programs but the platform's own, until `thaw`, or until nobody has asked for that for a minute.
   * @returns false when one of them is still on its way
   */
  freeze(): Promise<boolean>;
  /**
   * What follows a capture, or one part of it.
   * @param release `keepPort`: all TCP connections are broken but those within the guest and that of envd with this port of
   *   the host. `thaw`: then all programs go on
   * @returns false when there are connections that could not be broken
   */
  release(release: { readonly keepPort?: number | undefined; readonly thaw: boolean }): Promise<boolean>;
  /** Names the guest. */
  setIdentity(identity: Identity): void;
  /** Mounts attached drives, unless they are mounted already. @throws AenvError `drive_unusable` */
  mountDrives(drives: readonly GuestDrive[]): Promise<void>;
  /** Writes what file systems have in memory to their disks. */
  sync(): Promise<void>;
  bootId(): string;
  /** Does what can be done ahead of a capture, so that the first call after it finds it done. */
  warmUp(): void;
  close(): Promise<void>;
}

/** The real one, through the native `restore` applet. `native` is the path of the native program. */
export function guestSystem(native: string): GuestSystem {
  const applet = new ResidentApplet(native, 'restore');
  return {
    async renew({ time, seed }) {
      const requests = [
        ...(time === undefined ? [] : [[`clock ${time.seconds} ${time.at} ${time.port}`]]),
        ...(seed === undefined ? [] : [['reseed', Buffer.from(seed).toString('hex')]]),
      ];
      let waited = 0;
      for (const [index, { errno, pairs }] of (await applet.ask(requests)).entries()) {
        const [request = ''] = requests[index] ?? [];
        if (errno !== 0) throw new AenvError('internal', `${request} failed with system error ${errno}`);
        for (const [name, value] of pairs) if (name === 'waited') waited = Number(value);
      }
      return waited;
    },
    freeze: async () => (await applet.ask([['freeze']]))[0]?.errno === 0,
    async release({ keepPort, thaw }) {
      const requests = [
        ...(keepPort === undefined ? [] : [[`disconnect ${keepPort}`]]),
        // Without cgroups nothing was stopped, and there is nothing to let go on.
        ...(thaw ? [['thaw']] : []),
      ];
      const [first] = await applet.ask(requests);
      return keepPort === undefined || first?.errno === 0;
    },
    sync: () => runNative(native, ['sync']),
    setIdentity: (identity) => applyIdentity(identity),
    mountDrives: (drives) => mountDrives(drives, (args) => runNative(native, ['mount', ...args])),
    bootId: () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    warmUp() {
      applet.warmUp();
      rehearseIdentity();
    },
    close: () => applet.close(),
  };
}

/** Runs an applet that answers nothing. @throws AenvError `internal` with its message */
function runNative(native: string, args: readonly string[]): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn(native, args, { stdio: ['ignore', 'ignore', 'pipe'], env: {} });
  let message = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    message = (message + text).slice(0, 1024);
  });
  child.on('error', (error) => reject(new AenvError('internal', `${args[0]}: ${error.message}`, { cause: error })));
  child.on('close', (code) => {
    if (code === 0) resolve();
    else reject(new AenvError('internal', `${args[0]} failed: ${message.trim()}`));
  });
  return promise;
}
