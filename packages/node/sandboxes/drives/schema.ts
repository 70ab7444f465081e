import { z } from 'zod';

/** An attached drive in a JSON column or a manifest. */
export const DriveSchema = z.object({
  driveId: z.string(),
  label: z.string(),
  mountPath: z.string(),
  subPath: z.string().exactOptional(),
  readOnly: z.boolean(),
  sizeMb: z.int(),
});
