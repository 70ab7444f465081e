import { z } from '@hono/zod-openapi';
import { Timeout } from './bounds.ts';
import { ErrorAnswer } from './error.ts';
import { Sandbox } from './sandbox.ts';

export const MAX_FORKS = 100;

/** Body of POST /sandboxes/{sandboxID}/fork; may be absent. */
export const ForkSandbox = z
  .strictObject({
    count: z.int().min(1).max(MAX_FORKS).nullish().openapi({ description: 'how many children; 1 when absent' }),
    timeout: Timeout.nullish().openapi({ description: 'time to live of each in seconds; 300 when absent' }),
  })
  .openapi('ForkSandbox');

/** One for each child that was asked for: the sandbox, or why it did not start. */
export const ForkResult = z
  .object({
    sandbox: Sandbox.optional(),
    error: ErrorAnswer.optional().openapi({ description: 'as the answer to a create that failed' }),
  })
  .openapi('ForkResult');
export type ForkResult = z.output<typeof ForkResult>;
