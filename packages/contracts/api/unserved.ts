import { z } from '@hono/zod-openapi';

/** Member of an issue's `params` that names the error code to answer with. */
export const UNSUPPORTED = { code: 'unsupported_field' } as const;

/**
 * A field that clients know and this server does not serve yet. Values that ask for nothing (absent, null, the given
 * one, and empty objects and arrays) are taken; anything else is refused by name instead of being ignored.
 */
export function unserved(feature: string, harmless?: boolean) {
  return z
    .unknown()
    .refine((value) => value === harmless || asksForNothing(value), {
      message: `not supported by this server: ${feature}`,
      params: UNSUPPORTED,
    })
    .optional()
    .openapi({ description: `not served yet (${feature})` });
}

function asksForNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
