import type { Volume } from '../volume/contract.ts';
import { EXPORT_FLAG } from './protocol/numbers.ts';
import { Budget } from './transmission/budget.ts';

/** What an export has done since it was made, for metrics. */
export interface ExportCounters {
  reads: number;
  readBytes: number;
  writes: number;
  writtenBytes: number;
  flushes: number;
  /** trims and write-zeroes */
  zeroes: number;
  errors: number;
}

export function noCounters(): ExportCounters {
  return { reads: 0, readBytes: 0, writes: 0, writtenBytes: 0, flushes: 0, zeroes: 0, errors: 0 };
}

/**
 * Bytes of requests and replies that one export may have in memory. One request is let in even if it is larger, so the
 * bound for a hostile client is this or the largest request.
 */
const IN_FLIGHT_BYTES = 16 * 1024 * 1024;

/** A volume as clients see it. All connections to it share its budget. */
export class Export {
  readonly name: string;
  readonly volume: Volume;
  readonly budget: Budget;
  readonly counters = noCounters();

  constructor(name: string, volume: Volume, inFlightBytes = IN_FLIGHT_BYTES) {
    this.name = name;
    this.volume = volume;
    this.budget = new Budget(inFlightBytes);
  }

  /** Transmission flags. A read may only be answered in several chunks where structured replies were agreed on. */
  flags(structured: boolean): number {
    const common =
      EXPORT_FLAG.hasFlags | EXPORT_FLAG.flush | EXPORT_FLAG.multiConn | (structured ? EXPORT_FLAG.dontFragment : 0);
    if (this.volume.readOnly) return common | EXPORT_FLAG.readOnly;
    return common | EXPORT_FLAG.fua | EXPORT_FLAG.trim | EXPORT_FLAG.writeZeroes | EXPORT_FLAG.fastZero;
  }
}
