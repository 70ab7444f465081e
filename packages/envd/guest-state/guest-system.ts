import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { GuestDrive } from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { mountDrives } from '../drives/mount-drives.ts';
import { ResidentApplet } from '../native/applet.ts';
import { applyIdentity, type Identity, rehearseIdentity } from './identity.ts';

/** A moment by the host's clock, and when it was here. */
export interface HostTime {
  /** since the epoch, a decimal number */
  readonly seconds: string;
  /** nanoseconds of CLOCK_MONOTONIC at which it was so */
  readonly at: bigint;
}

/** The parts of the guest that the host changes; tests put something harmless in its place. */
export interface GuestSystem {
  /** Steps the clock to what it is by now. */
  setClock(time: HostTime): Promise<void>;
  /** Mixes fresh entropy into the kernel's generator and makes it reseed. */
  reseed(seed: Uint8Array): Promise<void>;
  /** Breaks all TCP connections but those within the guest and that of envd with this port of the host. */
  disconnect(keepPort: number): Promise<void>;
  /**
   * Stops all programs but the platform's own, until `thaw`, or until nobody has asked for that for a minute.
   * @returns false when one of them is still on its way
   */
  freeze(): Promise<boolean>;
  thaw(): Promise<void>;
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
  const ask = async (...records: string[]): Promise<number> => (await applet.ask([records]))[0]?.errno ?? 0;
  const must = async (...records: string[]): Promise<void> => {
    const errno = await ask(...records);
    if (errno !== 0) throw new AenvError('internal', `${records[0]} failed with system error ${errno}`);
  };
  return {
    setClock: ({ seconds, at }) => must(`clock ${seconds} ${at}`),
    reseed: (seed) => must('reseed', Buffer.from(seed).toString('hex')),
    disconnect: (keepPort) => must(`disconnect ${keepPort}`),
    freeze: async () => (await ask('freeze')) === 0,
    // Without cgroups nothing was stopped, and there is nothing to let go on.
    thaw: async () => void (await ask('thaw')),
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
