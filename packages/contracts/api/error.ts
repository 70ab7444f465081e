import { z } from '@hono/zod-openapi';

/** Body of every error answer. */
export const ErrorAnswer = z
  .object({
    code: z.int().openapi({ description: 'the HTTP status', example: 404 }),
    message: z.string(),
    error_code: z.string().openapi({ description: 'a code of the error reference', example: 'sandbox_not_found' }),
    remediation: z.string().openapi({ description: 'what can be done about it' }),
  })
  .openapi('Error');
export type ErrorAnswer = z.output<typeof ErrorAnswer>;
