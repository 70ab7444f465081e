import { z } from '@hono/zod-openapi';

const MAX_METADATA_BYTES = 64 * 1024;
const MAX_ENV_BYTES = 256 * 1024;
/** Linux takes no longer single argument or variable (MAX_ARG_STRLEN, execve(2)). */
const MAX_ENV_VALUE_BYTES = 128 * 1024 - 1;

const bytes = (text: string): number => new TextEncoder().encode(text).length;
const total = (map: Readonly<Record<string, string>>): number =>
  Object.entries(map).reduce((sum, [name, value]) => sum + bytes(name) + bytes(value), 0);

/** Labels of a sandbox: strings by name. */
export const Metadata = z
  .record(z.string(), z.string())
  .refine((map) => total(map) <= MAX_METADATA_BYTES, `larger than ${MAX_METADATA_BYTES} bytes`)
  .openapi({ description: 'labels; lists can be filtered by them', example: { user: 'u1' } });

/** Environment variables; names as shells take them. */
export const EnvVars = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not a name of an environment variable'),
    z
      .string()
      .refine((value) => !value.includes('\0'), 'contains a zero byte')
      .refine((value) => bytes(value) <= MAX_ENV_VALUE_BYTES, `longer than ${MAX_ENV_VALUE_BYTES} bytes`),
  )
  .refine((map) => total(map) <= MAX_ENV_BYTES, `larger than ${MAX_ENV_BYTES} bytes`)
  .openapi({ description: 'environment of everything that runs in the sandbox', example: { LANG: 'C.UTF-8' } });

/** A time to live as sent; its range is a question of the configuration. */
export const Timeout = z.int().openapi({ description: 'time to live in seconds, greater than 0', example: 300 });
