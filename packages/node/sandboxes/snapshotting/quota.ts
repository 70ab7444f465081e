import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { SnapshotUsage } from '../../store/snapshot-record.ts';

/** What snapshots may take; absent members are no limit. */
export interface SnapshotLimits {
  readonly max?: number | undefined;
  readonly maxBytes?: number | undefined;
}

/** Counts snapshots that are just being taken as if they were there: two never share the last place. */
export class SnapshotQuota {
  readonly #limits: SnapshotLimits;
  readonly #usage: () => SnapshotUsage;
  readonly #taking = new Set<{ readonly bytes: number }>();

  /** @param usage of all snapshots that are there */
  constructor(limits: SnapshotLimits, usage: () => SnapshotUsage) {
    this.#limits = limits;
    this.#usage = usage;
  }

  /**
   * A place for one more, until the result is disposed; by then it is there, or never will be.
   * @param bytes what it would take at most
   * @throws AenvError `capacity_exhausted`, naming the limit
   */
  take(bytes: number): Disposable {
    const { max, maxBytes } = this.#limits;
    const there = this.#usage();
    const count = there.count + this.#taking.size;
    if (max !== undefined && count >= max) throw exhausted(`there are ${count} snapshots, and snapshots.max is ${max}`);
    const taken = [...this.#taking].reduce((sum, one) => sum + one.bytes, there.bytes);
    if (maxBytes !== undefined && taken + bytes > maxBytes) {
      throw exhausted(
        `snapshots take ${taken} bytes, and with up to ${bytes} more they would be beyond snapshots.max_bytes (${maxBytes})`,
      );
    }
    const place = { bytes };
    this.#taking.add(place);
    return { [Symbol.dispose]: () => void this.#taking.delete(place) };
  }
}

function exhausted(message: string): AenvError {
  return new AenvError('capacity_exhausted', message, {
    remediation: 'Delete snapshots that are not needed (`aenv snapshot rm`), or raise the limit named in the message.',
  });
}
