import { z } from '@hono/zod-openapi';
import { Timeout } from './bounds.ts';

const memory = z
  .boolean()
  .nullish()
  .openapi({ description: 'false: a paused sandbox starts cold from its disk; means nothing for a running one' });

/** Body of POST /sandboxes/{sandboxID}/connect. */
export const ConnectSandbox = z.strictObject({ timeout: Timeout, memory }).openapi('ConnectSandbox');

/** Body of POST /v2/sandboxes/{sandboxID}/connect; may be absent. */
export const ConnectSandboxV2 = z
  .strictObject({
    timeout: Timeout.nullish().openapi({ description: 'time to live in seconds from now; 300 when absent' }),
    memory,
  })
  .openapi('ConnectSandboxV2');

/** Body of POST /sandboxes/{sandboxID}/timeout. */
export const SetTimeout = z
  .strictObject({
    timeout: z.int().openapi({ description: 'seconds from now, shorter than before allowed; below 0 counts as 0' }),
  })
  .openapi('SetTimeout');

/** Body of POST /sandboxes/{sandboxID}/refreshes; may be absent. */
export const RefreshSandbox = z
  .strictObject({
    duration: z
      .int()
      .min(0)
      .max(3600)
      .nullish()
      .openapi({ description: 'seconds from now, at least 15; the end only ever moves later' }),
  })
  .openapi('RefreshSandbox');

/** Body of POST /sandboxes/{sandboxID}/pause; may be absent. */
export const PauseSandbox = z
  .strictObject({
    memory: z.boolean().nullish().openapi({ description: 'false: only the disk is kept; true when absent' }),
  })
  .openapi('PauseSandbox');

/** Body of POST /sandboxes/{sandboxID}/resume; may be absent. */
export const ResumeSandbox = z
  .strictObject({
    timeout: Timeout.nullish().openapi({ description: 'time to live in seconds from now; 15 when absent' }),
    autoPause: z
      .boolean()
      .nullish()
      .openapi({ description: 'whether its next end pauses it again; as before when absent' }),
    memory,
  })
  .openapi('ResumeSandbox');
