import { z } from '@hono/zod-openapi';

export const Team = z
  .object({
    teamID: z.string(),
    name: z.string(),
    apiKey: z.string().openapi({ description: 'the key that the request came with' }),
    isDefault: z.boolean(),
  })
  .openapi('Team');
export type Team = z.output<typeof Team>;
