/** What of a file a request is about, by its conditions and its range. RFC 9110, sections 13 and 14. */
export type Selection =
  | { readonly kind: 'whole' }
  | { readonly kind: 'range'; readonly start: number; readonly end: number }
  | { readonly kind: 'not-modified' }
  | { readonly kind: 'failed' }
  | { readonly kind: 'unsatisfiable' };

/** The state of the file that conditions compare with. */
export interface Validators {
  readonly etag: string;
  /** `ms` since the epoch */
  readonly modified: number;
  readonly size: number;
}

export interface ConditionHeaders {
  readonly 'if-match'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
  readonly 'if-modified-since'?: string | undefined;
  readonly 'if-unmodified-since'?: string | undefined;
  readonly 'if-range'?: string | undefined;
  readonly range?: string | undefined;
}

/** Whether a request has anything that `select` looks at. */
export function isConditional(headers: ConditionHeaders): boolean {
  return (
    headers.range !== undefined ||
    headers['if-match'] !== undefined ||
    headers['if-none-match'] !== undefined ||
    headers['if-modified-since'] !== undefined ||
    headers['if-unmodified-since'] !== undefined
  );
}

/** Evaluates in the order of RFC 9110, 13.2.2. A malformed condition or range counts as absent, several ranges too. */
export function select(headers: ConditionHeaders, file: Validators): Selection {
  const match = headers['if-match'];
  if (match !== undefined) {
    if (!listHas(match, file.etag)) return { kind: 'failed' };
  } else if (isBefore(headers['if-unmodified-since'], file)) {
    return { kind: 'failed' };
  }
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined) {
    if (listHas(noneMatch, file.etag)) return { kind: 'not-modified' };
  } else if (isBefore(headers['if-modified-since'], file) === false) {
    return { kind: 'not-modified' };
  }
  if (headers.range === undefined || !rangeApplies(headers['if-range'], file)) return { kind: 'whole' };
  return parseRange(headers.range, file.size);
}

function listHas(list: string, etag: string): boolean {
  return list.split(',').some((item) => {
    const text = item.trim();
    return text === '*' || text.replace(/^W\//, '') === etag;
  });
}

/** Whether the time of the header lies before the last change; undefined for no time. Headers have whole seconds. */
function isBefore(header: string | undefined, { modified }: Validators): boolean | undefined {
  const time = header === undefined ? Number.NaN : Date.parse(header);
  return Number.isNaN(time) ? undefined : Math.floor(modified / 1000) * 1000 > time;
}

function rangeApplies(ifRange: string | undefined, file: Validators): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.startsWith('"') || ifRange.startsWith('W/')) return ifRange === file.etag;
  return Date.parse(ifRange) === Math.floor(file.modified / 1000) * 1000;
}

function parseRange(header: string, size: number): Selection {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header);
  if (match === null) return { kind: 'whole' };
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return { kind: 'whole' };
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'range', start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return { kind: 'whole' };
  return start >= size ? { kind: 'unsatisfiable' } : { kind: 'range', start, end };
}
