import type { ErrorSpec } from './error-spec.ts';

/** Codes of the snapshot repository; part of the registry. */
export const SNAPSHOT_ERRORS = {
  snapshot_not_found: {
    status: 404,
    summary: 'No snapshot with this id or name.',
    remediation: 'List snapshots with `aenv snapshot ls`.',
  },
  snapshot_exists: {
    status: 409,
    summary: 'A snapshot with this id exists already, is being made, or is still open after it was removed.',
    remediation: 'Use another id; the ids of snapshots are never used again.',
  },
  snapshot_in_use: {
    status: 400,
    summary: 'Sandboxes that were made from this snapshot are alive.',
    remediation: 'Delete the sandboxes named in the message with `aenv rm ID`, then try again.',
  },
  snapshot_corrupt: {
    status: 500,
    summary: 'A part of a snapshot is damaged or missing; it is never restored.',
    remediation:
      'The message names the part; `aenv snapshot verify ID` checks all of them. Remove the snapshot, or bring the part back from a backup.',
  },
  snapshot_unsupported: {
    status: 400,
    summary: 'The snapshot was made by a newer version of aenv.',
    remediation: 'Use the version that made it, or a newer one.',
  },
  snapshot_incompatible: {
    status: 409,
    summary: 'The snapshot was made on a host that differs in something that a restored machine depends on.',
    remediation: 'The message names the difference; start it on a host like that one, or make the snapshot again here.',
  },
} satisfies Record<string, ErrorSpec>;
