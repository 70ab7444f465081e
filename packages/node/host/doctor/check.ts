/** One finding about this host. */
export interface Finding {
  readonly name: string;
  /** `warn`: sandboxes run, but not as well as they could */
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  /** the command or the setting that mends it */
  readonly remedy?: string;
  /** what `--fix` does about it; absent when only a person can */
  readonly mend?: () => Promise<void>;
}

export function ok(name: string, detail: string): Finding {
  return { name, status: 'ok', detail };
}

export function warn(name: string, detail: string, remedy?: string, mend?: () => Promise<void>): Finding {
  return { name, status: 'warn', detail, ...(remedy && { remedy }), ...(mend && { mend }) };
}

export function fail(name: string, detail: string, remedy?: string, mend?: () => Promise<void>): Finding {
  return { name, status: 'fail', detail, ...(remedy && { remedy }), ...(mend && { mend }) };
}
