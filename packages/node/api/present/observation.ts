import type { SandboxLogEntry, SandboxMetric } from '@aenv/contracts/api/observation.ts';
import type { SandboxLogEntry as Entry, LoadSample } from '../../sandboxes/observe/contract.ts';

export function presentSample({ at, ...load }: LoadSample): SandboxMetric {
  return { timestamp: new Date(at).toISOString(), timestampUnix: Math.floor(at / 1000), ...load };
}

export function presentEntry({ at, level, logger, message, fields }: Entry): SandboxLogEntry {
  return { timestamp: new Date(at).toISOString(), level, message, fields: { ...fields, logger } };
}

/** The entry as old clients want it: a line that is a JSON object itself. */
export function presentLine({ at, level, logger, message, fields }: Entry): { timestamp: string; line: string } {
  const line = JSON.stringify({ ...fields, level, logger, message });
  return { timestamp: new Date(at).toISOString(), line };
}
