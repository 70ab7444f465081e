import { CollectedStorage, CollectStorage, StoredImage } from '@aenv/contracts/api/storage.ts';
import { z } from '@hono/zod-openapi';
import type { Collected, ImageInfo } from '../../storage/contract.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';

const collected = [{ status: 200 as const, description: 'what was removed', schema: CollectedStorage }];

/** Images that are here, and the removal of what nobody needs. Not part of the E2B API. */
export function storageRoutes({ storage }: Pick<ApiParts, 'storage'>): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/aenv/images',
      summary: 'List the images that are here',
      answers: [{ status: 200, description: 'with sizes and users', schema: z.array(StoredImage) }],
      handle: async () => ({ status: 200, body: (await storage.images()).map(presentImage) }),
    }),
    route({
      method: 'POST',
      path: '/aenv/images/gc',
      summary: 'Remove all images that nobody uses',
      answers: collected,
      errors: [503],
      handle: async () => ({ status: 200, body: presentCollected(await storage.collectImages()) }),
    }),
    route({
      method: 'DELETE',
      path: '/aenv/images/{image}',
      summary: 'Remove an image that nobody uses, by digest, the beginning of one, or name',
      answers: collected,
      errors: [404, 503],
      handle: async ({ param }) => ({ status: 200, body: presentCollected(await storage.removeImage(param('image'))) }),
    }),
    route({
      method: 'POST',
      path: '/aenv/storage/gc',
      summary: 'Remove what nobody needs on this host',
      body: CollectStorage,
      bodyOptional: true,
      answers: collected,
      errors: [503],
      handle: async ({ body }) => {
        return { status: 200, body: presentCollected(await storage.collect({ all: body.all === true })) };
      },
    }),
  ];
}

function presentImage({ diskSizeMb, pulledAt, usedBy, ...image }: ImageInfo): StoredImage {
  return {
    ...{ ...image, diskSizeMB: diskSizeMb, usedBy: [...usedBy] },
    ...(pulledAt === undefined ? {} : { pulledAt: pulledAt.toISOString() }),
  };
}

function presentCollected({ removed, freedBytes, machines, templates, snapshots }: Collected): CollectedStorage {
  return {
    ...{ removed: removed.map((asset) => ({ ...asset })), freedBytes },
    ...(machines === undefined ? {} : { machines }),
    ...(templates === undefined ? {} : { templates }),
    ...(snapshots === undefined ? {} : { snapshots: { ...snapshots, blockedBy: [...snapshots.blockedBy] } }),
  };
}
