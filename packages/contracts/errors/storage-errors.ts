import type { ErrorSpec } from './error-spec.ts';

/** Codes of what is kept on the host; part of the registry. */
export const STORAGE_ERRORS = {
  image_in_use: {
    status: 400,
    summary: 'Templates, sandboxes or snapshots stand on this image.',
    remediation: 'Remove what the message names, then try again.',
  },
  storage_busy: {
    status: 503,
    summary: 'Nothing can be removed while images are pulled, built or captured.',
    remediation: 'Try again when they are done.',
    retryable: true,
  },
  storage_unknown: {
    status: 500,
    summary: 'Something that may refer to anything cannot be read, so nothing is removed.',
    remediation: 'The message names the files; look at them with `aenv storage verify`, mend or remove them.',
  },
} satisfies Record<string, ErrorSpec>;
