import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const SECRET_NAME = /token|secret|password|passwd|authorization|cookie|credential|api[-_]?key|envvars|signature/i;
const SECRET_VALUE = /\b(e2b_|sk_e2b_)[A-Za-z0-9_-]{16,}/g;
const HIDDEN = '[redacted]';
const MAX_DEPTH = 6;
const MAX_ITEMS = 100;
const MAX_TEXT = 16 * 1024;

/**
 * What may be logged of a value: members whose name speaks of a secret are hidden, and so is anything that looks like an
 * API key. Errors become plain objects with their causes. Bounded in depth, breadth and length, cycles included.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (depth >= MAX_DEPTH) return '[deeper]';
  if (value instanceof Error) return redactError(value, depth);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => redact(item, depth + 1));
  if (value instanceof Map || value instanceof Set) return redact([...value].slice(0, MAX_ITEMS), depth);
  return redactMembers(value, depth);
}

export function redactText(text: string): string {
  const hidden = text.replace(SECRET_VALUE, `$1${HIDDEN}`);
  return hidden.length > MAX_TEXT ? `${hidden.slice(0, MAX_TEXT)}… (${hidden.length} characters)` : hidden;
}

function redactMembers(value: object, depth: number): object {
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value).slice(0, MAX_ITEMS)) {
    result[name] = SECRET_NAME.test(name) && member !== undefined ? HIDDEN : redact(member, depth + 1);
  }
  return result;
}

function redactError(error: Error, depth: number): object {
  return {
    name: error.name,
    message: redactText(error.message),
    ...(error instanceof AenvError ? { code: error.code } : {}),
    ...(error.stack === undefined ? {} : { stack: redactText(error.stack) }),
    ...('code' in error && !(error instanceof AenvError) ? { code: redact(error.code, depth + 1) } : {}),
    ...(error instanceof AggregateError ? { errors: redact(error.errors, depth + 1) } : {}),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
  };
}
