import type { z } from '@hono/zod-openapi';
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
    attachedDrives: unserved('attached drives'),
    extraBootArgs: unserved('arguments of the kernel'),
  })
  .openapi('NewColdSandbox');
export type NewColdSandbox = z.output<typeof NewColdSandbox>;
