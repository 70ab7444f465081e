import { z } from '@hono/zod-openapi';

const fields = {
  id: z.string().openapi({ format: 'uuid' }),
  name: z.string(),
  mask: z
    .object({
      prefix: z.string().openapi({ example: 'e2b_' }),
      valueLength: z.int().openapi({ description: 'characters after the prefix' }),
      maskedValuePrefix: z.string(),
      maskedValueSuffix: z.string(),
    })
    .openapi({ description: 'what may be shown of the key' }),
  createdAt: z.string().openapi({ format: 'date-time' }),
  lastUsed: z.string().nullable().openapi({ format: 'date-time', description: 'some minutes behind; null: never' }),
};

export const ApiKey = z.object(fields).openapi('TeamAPIKey');
export type ApiKey = z.output<typeof ApiKey>;

export const CreatedApiKey = z
  .object({ ...fields, key: z.string().openapi({ description: 'the key itself, shown this once' }) })
  .openapi('CreatedTeamAPIKey');
export type CreatedApiKey = z.output<typeof CreatedApiKey>;

/** Body of POST /api-keys and PATCH /api-keys/{apiKeyID}. */
export const ApiKeyName = z
  .strictObject({
    name: z
      .string()
      .trim()
      .min(1, 'must not be empty')
      .max(100, 'longer than 100 characters')
      .refine((name) => !/\p{Cc}/u.test(name), 'holds control characters'),
  })
  .openapi('ApiKeyName');
