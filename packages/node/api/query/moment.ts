import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const RFC3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i;

/**
 * A moment in RFC 3339, compared at microseconds: sandboxes start at whole milliseconds, so a part of one leads to the
 * next. A `+` of the offset may have become a blank in the query.
 * @throws AenvError `invalid_request`
 */
export function startedAfter(text: string): Date {
  const match = RFC3339.exec(text.replace(/ (?=\d\d:\d\d$)/, '+'));
  const [, seconds, fraction = '', offset] = match ?? [];
  const micros = Number(fraction.slice(0, 6).padEnd(6, '0'));
  const whole = Date.parse(`${seconds}${offset?.toUpperCase()}`);
  if (Number.isNaN(whole)) {
    throw new AenvError('invalid_request', 'query.startedAfter: must be a time in RFC 3339, as 2026-01-02T03:04:05Z');
  }
  return new Date(whole + Math.ceil(micros / 1000));
}
