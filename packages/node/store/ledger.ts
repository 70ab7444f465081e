import { join } from 'node:path';
import { BuildLedger } from './build-ledger.ts';
import { Database } from './database.ts';
import { KeyLedger } from './key-ledger.ts';
import { MetaLedger } from './meta-ledger.ts';
import { SandboxLedger } from './sandbox-ledger.ts';
import { SnapshotLedger } from './snapshot-ledger.ts';
import { TemplateLedger } from './template-ledger.ts';

/** All that this node remembers, in one SQLite file under its home folder. */
export interface Ledger extends Disposable {
  readonly sandboxes: SandboxLedger;
  readonly templates: TemplateLedger;
  readonly snapshots: SnapshotLedger;
  readonly builds: BuildLedger;
  readonly keys: KeyLedger;
  readonly meta: MetaLedger;
  /** Several changes as one: all are on the disk when it returns, or none when it throws. */
  transaction<T>(work: () => T): T;
  close(): void;
}

/**
 * Opens `$AENV_HOME/ledger/aenv.db`. Whoever holds it owns the home folder.
 * @param options.busyMs how long to wait for another owner to leave, `ms`; default 2 s
 * @throws AenvError `already_running`, `no_space`, `ledger_failed`
 */
export function openLedger(home: string, options: { readonly busyMs?: number } = {}): Ledger {
  const database = Database.open(join(home, 'ledger', 'aenv.db'), options.busyMs);
  return {
    sandboxes: new SandboxLedger(database),
    templates: new TemplateLedger(database),
    snapshots: new SnapshotLedger(database),
    builds: new BuildLedger(database),
    keys: new KeyLedger(database),
    meta: new MetaLedger(database),
    transaction: (work) => database.transaction(work),
    close: () => database.close(),
    [Symbol.dispose]: () => database.close(),
  };
}
