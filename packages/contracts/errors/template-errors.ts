import type { ErrorSpec } from './error-spec.ts';

/** Codes of templates and their builds; part of the registry. */
export const TEMPLATE_ERRORS = {
  template_in_use: {
    status: 400,
    summary: 'Sandboxes of this template are alive.',
    remediation: 'Delete the sandboxes named in the message with `aenv rm ID`, then try again.',
  },
  template_building: {
    status: 409,
    summary: 'Another build of this template is under way.',
    remediation: 'Wait for its end, or build under another name.',
    retryable: true,
  },
  build_not_waiting: {
    status: 400,
    summary: 'This build was started before.',
    remediation: 'Ask for a new build of the template with POST /v3/templates.',
  },
} satisfies Record<string, ErrorSpec>;
