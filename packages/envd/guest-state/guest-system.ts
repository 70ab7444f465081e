import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { GuestDrive } from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { mountDrives } from '../drives/mount-drives.ts';
import { applyIdentity, type Identity } from './identity.ts';

/** The parts of the guest that /init changes; tests put something harmless in its place. */
export interface GuestSystem {
  /** Steps the clock to `seconds` (a decimal number as text) since the epoch. */
  setClock(seconds: string): Promise<void>;
  /** Mixes fresh entropy into the kernel's generator and makes it reseed. */
  reseed(seed: Uint8Array): Promise<void>;
  /** Names the guest. */
  setIdentity(identity: Identity): Promise<void>;
  /** Mounts attached drives, unless they are mounted already. @throws AenvError `drive_unusable` */
  mountDrives(drives: readonly GuestDrive[]): Promise<void>;
  bootId(): Promise<string>;
}

/** The real one. `native` is the path of the native program. */
export function guestSystem(native: string): GuestSystem {
  return {
    setClock: (seconds) => runNative(native, ['clock', 'set', seconds]),
    reseed: (seed) => runNative(native, ['reseed'], seed),
    setIdentity: (identity) => applyIdentity(identity),
    mountDrives: (drives) => mountDrives(drives, (args) => runNative(native, ['mount', ...args])),
    bootId: async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
  };
}

/** Runs an applet that answers nothing. @throws AenvError `internal` with its message */
function runNative(native: string, args: readonly string[], input?: Uint8Array): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn(native, args, { stdio: ['pipe', 'ignore', 'pipe'], env: {} });
  let message = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    message = (message + text).slice(0, 1024);
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.on('error', (error) => reject(new AenvError('internal', `${args[0]}: ${error.message}`, { cause: error })));
  child.on('close', (code) => {
    if (code === 0) resolve();
    else reject(new AenvError('internal', `${args[0]} failed: ${message.trim()}`));
  });
  return promise;
}
