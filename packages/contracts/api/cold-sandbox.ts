import type { z } from '@hono/zod-openapi';
import { MAX_ATTACHED_DRIVES } from '../guest/layout.ts';
import { AttachedDrives } from './attached-drive.ts';
import { NewSandbox } from './create-sandbox.ts';
import { ImageName, TemplateSizes } from './image-template.ts';
import { unserved } from './unserved.ts';

const { allow_internet_access: allowInternetAccess } = NewSandbox.shape;

/** Body of POST /sandboxes-cold. */
export const NewColdSandbox = NewSandbox.omit({ templateID: true, allow_internet_access: true })
  .extend({
    ...TemplateSizes,
    image: ImageName,
    allowInternetAccess,
    attachedDrives: AttachedDrives.nullish().openapi({
      description: `disks made of images, mounted besides the root; at most ${MAX_ATTACHED_DRIVES}`,
    }),
    extraBootArgs: unserved('arguments of the kernel'),
  })
  .openapi('NewColdSandbox');
export type NewColdSandbox = z.output<typeof NewColdSandbox>;
