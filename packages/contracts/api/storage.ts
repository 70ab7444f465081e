import { z } from '@hono/zod-openapi';

const bytes = (description: string) => z.int().openapi({ description });

export const StoredImage = z
  .object({
    name: z.string().openapi({ description: 'the full name that it was pulled by; empty for images of the product' }),
    digest: z.string(),
    diskSizeMB: z.int(),
    layers: z.int(),
    bytes: bytes('what its layers occupy on this host'),
    uniqueBytes: bytes('of these, what no other image has'),
    sharedBytes: bytes('of these, what other images have too'),
    remoteBytes: bytes('of layers that stay in a registry'),
    usedBy: z.array(z.string()).openapi({ example: ['template tools'] }),
    pulledAt: z.string().optional().openapi({ format: 'date-time', description: 'absent for images of the product' }),
  })
  .openapi('StoredImage');
export type StoredImage = z.output<typeof StoredImage>;

/** Body of POST /aenv/storage/gc. */
export const CollectStorage = z
  .strictObject({
    all: z.boolean().nullish().openapi({ description: 'also what was used lately; false when absent' }),
  })
  .openapi('CollectStorage');

export const CollectedStorage = z
  .object({
    removed: z.array(z.object({ kind: z.string(), path: z.string(), bytes: z.int() })),
    freedBytes: bytes('what became free; files that a home shares with what was removed stay'),
    machines: z.int().optional().openapi({ description: 'captured machines that this home had taken over' }),
    templates: z
      .int()
      .optional()
      .openapi({ description: 'templates without a name, of sandboxes that booted an image' }),
    snapshots: z
      .object({ bases: z.int(), chunks: z.int(), files: z.int(), freedBytes: z.int(), blockedBy: z.array(z.string()) })
      .optional()
      .openapi({ description: 'memory that no snapshot needs any more' }),
  })
  .openapi('CollectedStorage');
export type CollectedStorage = z.output<typeof CollectedStorage>;
