import { GUEST_LAYOUT } from '@aenv/contracts/guest/layout.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { type GuestSystem, guestSystem } from '../guest-state/guest-system.ts';
import { DEFAULT_PROCESS_TABLE, type ProcessTableOptions } from '../process/process-table.ts';
import { type Log, stderrLog } from './log.ts';

/** All that differs between the guest and a test. */
export interface EnvdOptions {
  readonly address: string;
  /** 0 lets the kernel choose */
  readonly port: number;
  /** path of the native program */
  readonly native: string;
  readonly stateFile: string;
  /** folder with passwd and group */
  readonly etc: string;
  readonly system: GuestSystem;
  readonly processes: ProcessTableOptions;
  readonly log: Log;
}

export const GUEST_OPTIONS: EnvdOptions = {
  address: '0.0.0.0',
  port: ENVD_PORT,
  native: GUEST_LAYOUT.native,
  stateFile: GUEST_LAYOUT.stateFile,
  etc: '/etc',
  system: guestSystem(GUEST_LAYOUT.native),
  processes: DEFAULT_PROCESS_TABLE,
  log: stderrLog,
};
