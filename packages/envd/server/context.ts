import type { Watchers } from '../filesystem/watch/watchers.ts';
import type { StateStore } from '../guest-state/state.ts';
import type { Attributes } from '../metadata/attributes.ts';
import type { ProcessTable } from '../process/process-table.ts';
import type { Users } from '../users/users.ts';
import type { Log } from './log.ts';
import type { EnvdOptions } from './options.ts';

/** What the services of one envd share. */
export interface EnvdContext {
  readonly options: EnvdOptions;
  readonly state: StateStore;
  readonly users: Users;
  readonly processes: ProcessTable;
  readonly attributes: Attributes;
  readonly watchers: Watchers;
  readonly log: Log;
}
