import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { MemorySink } from '@aenv/vmm/contract/micro-vm.ts';
import type { CommitOptions, SnapshotDraft, SnapshotFacts, SnapshotManifest } from '../../contract.ts';
import type { Faults } from '../faults.ts';
import { DEVICE_STATE_FILE } from '../layout.ts';
import type { Captured } from './commit.ts';

export interface DraftOptions {
  readonly captured: Captured;
  readonly faults: Faults;
  readonly commit: (facts: SnapshotFacts, options: CommitOptions) => Promise<SnapshotManifest>;
  /** how to undo what was taken for the draft, its folder included */
  readonly taken: Rollback;
}

/** open ---commit---> committed, or failed; all of them ---dispose---> gone. Only a committed one leaves something. */
export class Draft implements SnapshotDraft {
  readonly deviceState: string;
  readonly memory: MemorySink;
  readonly #options: DraftOptions;
  #isCommitted = false;

  constructor(options: DraftOptions) {
    const { captured, faults } = options;
    this.#options = options;
    this.deviceState = join(captured.folder, DEVICE_STATE_FILE);
    this.memory = {
      data(offset, bytes) {
        const given = captured.delta.data(offset, bytes);
        // Nothing is waited for that need not be: there are thousands of runs.
        if (given === undefined) return faults.hit('snapshot.capture.streaming');
        return given.then(() => faults.hit('snapshot.capture.streaming'));
      },
      zero: (offset, length) => captured.delta.zero(offset, length),
    };
  }

  async expect(bytes: number): Promise<void> {
    await this.#options.captured.delta.expect(bytes);
  }

  async commit(facts: SnapshotFacts, options: CommitOptions = {}): Promise<SnapshotManifest> {
    if (this.#isCommitted) throw new AenvError('internal', 'a draft is committed once');
    this.#isCommitted = true;
    return this.#options.commit(facts, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.taken.run();
  }
}
