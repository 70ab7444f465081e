import type { DiskRecord } from '../records/schema.ts';
import type { ThreadHandle } from '../threads/thread-handle.ts';
import { Serial } from './serial.ts';

/** A disk as the main thread has it: its record, as it was last written, and the thread that has it open. */
export class Disk {
  readonly serial = new Serial();
  record: DiskRecord;
  /** layers of records that could not be replaced by that one: a daemon that starts now would find them */
  stale: readonly string[] = [];
  /** undefined while it is not open */
  thread: ThreadHandle | undefined;
  /** whether the thread has the second upper open, and a swap can take place */
  prepared = false;
  /** whether a merge of its layers is due or under way */
  compacting = false;

  constructor(record: DiskRecord) {
    this.record = record;
  }

  get id(): string {
    return this.record.disk;
  }
}
