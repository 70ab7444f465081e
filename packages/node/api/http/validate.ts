import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { z } from '@hono/zod-openapi';

type Issue = z.core.$ZodIssue;

const MAX_ISSUES = 5;
const MAX_STEP = 64;

/**
 * Puts a value through its schema; every problem is named with the path of its field, for example
 * `body.network.foo: unknown field`.
 * @throws AenvError `unsupported_field` when all that is wrong is a field that is not served yet, else `invalid_request`
 */
export function validate<T extends z.ZodType>(schema: T, value: unknown, root: 'body' | 'query'): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues;
  const unsupported = issues.every((issue) => issue.code === 'custom' && issue.params?.code === 'unsupported_field');
  const lines = issues.flatMap((issue) => describe(issue, root));
  const more = lines.length > MAX_ISSUES ? `; and ${lines.length - MAX_ISSUES} more` : '';
  throw new AenvError(
    unsupported ? 'unsupported_field' : 'invalid_request',
    `${lines.slice(0, MAX_ISSUES).join('; ')}${more}`,
  );
}

function describe(issue: Issue, root: 'body' | 'query'): string[] {
  const at = pathOf(issue.path, root);
  if (issue.code === 'unrecognized_keys') {
    const what = root === 'body' ? 'unknown field' : 'unknown parameter';
    return issue.keys.map((key) => `${pathOf([...issue.path, key], root)}: ${what}`);
  }
  if (issue.code === 'invalid_key') return [`${at}: ${issue.issues[0]?.message ?? 'bad name'}`];
  const message = issue.message
    .replace(/^Invalid input: /, '')
    .replace(/^expected .*, received undefined$/, 'required');
  return [`${at}: ${message}`];
}

function pathOf(path: readonly PropertyKey[], root: string): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    const name = String(step);
    return `${text}.${name.length > MAX_STEP ? `${name.slice(0, MAX_STEP)}…` : name}`;
  }, root);
}
