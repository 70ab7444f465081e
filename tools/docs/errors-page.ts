import { ERRORS } from '@aenv/contracts/errors/registry.ts';

/** The text of docs/reference/errors.md. */
export function errorsPage(): string {
  const lines = [
    '# Errors',
    '',
    'Generated from `packages/contracts/errors/registry.ts`; do not edit.',
    '',
    'Every error on an API surface is JSON: `code` is the HTTP status, `error_code` one of the codes below, `message` says',
    'what is wrong in this case, `remediation` what can be done about it.',
    '',
    '| Code | Status | Meaning | What to do | Retry |',
    '|---|---|---|---|---|',
  ];
  for (const [code, spec] of Object.entries(ERRORS)) {
    const retry = 'retryable' in spec && spec.retryable === true ? 'yes' : '';
    lines.push(`| \`${code}\` | ${spec.status} | ${spec.summary} | ${spec.remediation} | ${retry} |`);
  }
  return `${lines.join('\n')}\n`;
}
