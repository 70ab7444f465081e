import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { MachineFacts } from '../host/machine.ts';
import type { Row } from '../measurement.ts';

/** What `latest.json` holds. */
export interface Report {
  /** RFC 3339 */
  readonly measuredAt: string;
  readonly machine: MachineFacts;
  readonly rows: readonly Row[];
}

export async function writeReport(path: string, report: Report): Promise<void> {
  await writeDurable(path, `${JSON.stringify(report, null, 2)}\n`);
}
