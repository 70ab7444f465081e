import { parseArgs } from 'node:util';
import { z } from 'zod';

const absolute = z.string().regex(/^\//, 'must be absolute');
const count = z.coerce.number().int().min(0);

const Arguments = z.strictObject({
  root: absolute,
  runtime: absolute,
  version: z.string().min(1),
  /** user that the daemon becomes, when it is started by root; its group has the same number */
  uid: count.min(1).exactOptional(),
  threads: count.min(1).max(64),
  'max-layers': count.min(1).max(200),
  'min-garbage-bytes': count,
  'look-ms': count.min(10),
  /** module that gives layers which are no files, and the file that is read for it: see `LayerSources` */
  'sources-module': absolute.exactOptional(),
  'sources-config': absolute.exactOptional(),
});
export type BlockdArguments = z.output<typeof Arguments>;

/** @throws Error that names the argument */
export function parseArguments(argv: readonly string[]): BlockdArguments {
  const options = Object.fromEntries(Object.keys(Arguments.shape).map((name) => [name, { type: 'string' as const }]));
  const { values } = parseArgs({ args: [...argv], options });
  const parsed = Arguments.safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`--${issue?.path.join('.')}: ${issue?.message}`);
}

/** The same, as a command line. */
export function formatArguments(values: BlockdArguments): string[] {
  return Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]));
}
