import { ApiKey, ApiKeyName, CreatedApiKey } from '@aenv/contracts/api/api-key.ts';
import { z } from '@hono/zod-openapi';
import { KEY_PREFIX } from '../../auth/api-keys.ts';
import type { ApiKeyRecord } from '../../store/key-ledger.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';

/** The keys of the team. The one that the node came up with is not among them: it lives in its file. */
export function apiKeyRoutes({ apiKeys }: ApiParts): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/api-keys',
      summary: 'List API keys',
      answers: [{ status: 200, description: 'the keys that are valid, oldest first', schema: z.array(ApiKey) }],
      handle: () => ({ status: 200, body: apiKeys.list().map(present) }),
    }),
    route({
      method: 'POST',
      path: '/api-keys',
      summary: 'Create an API key',
      body: ApiKeyName,
      answers: [{ status: 201, description: 'the new key; it cannot be shown again', schema: CreatedApiKey }],
      errors: [503, 507],
      handle: ({ body }) => {
        const { key, record } = apiKeys.create(body.name);
        return { status: 201, body: { ...present(record), key } satisfies CreatedApiKey };
      },
    }),
    route({
      method: 'PATCH',
      path: '/api-keys/{apiKeyID}',
      summary: 'Rename an API key',
      body: ApiKeyName,
      answers: [{ status: 200, description: 'the key under its new name', schema: ApiKey }],
      errors: [404],
      handle: ({ param, body }) => ({ status: 200, body: present(apiKeys.rename(param('apiKeyID'), body.name)) }),
    }),
    route({
      method: 'DELETE',
      path: '/api-keys/{apiKeyID}',
      summary: 'Revoke an API key',
      answers: [{ status: 204, description: 'requests with it are refused from now on' }],
      errors: [404],
      handle: ({ param }) => {
        apiKeys.revoke(param('apiKeyID'));
        return { status: 204 };
      },
    }),
  ];
}

function present(record: ApiKeyRecord): ApiKey {
  return {
    id: record.keyId,
    name: record.name,
    mask: {
      prefix: KEY_PREFIX,
      valueLength: record.valueLength,
      maskedValuePrefix: record.maskPrefix,
      maskedValueSuffix: record.maskSuffix,
    },
    createdAt: record.createdAt.toISOString(),
    lastUsed: record.lastUsedAt?.toISOString() ?? null,
  };
}
