import { z } from '@hono/zod-openapi';
import { MAX_ATTACHED_DRIVES } from '../guest/layout.ts';
import { ImageName, TemplateSizes } from './image-template.ts';

/** Names that drives of the platform have. */
const RESERVED = ['root', 'rootfs', 'tools'];
/** What the platform mounts itself: nothing goes there, and nothing goes over it. */
const PLATFORM = ['/proc', '/sys', '/dev', '/run'];

const DriveID = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, 'must be 1 to 64 letters, digits, `_`, `.` and `-`')
  .refine((id) => !RESERVED.includes(id), `must not be one of ${RESERVED.join(', ')}`)
  .openapi({ description: 'name of the drive, unique in its sandbox', example: 'data' });

const MountPath = z
  .string()
  .min(1)
  .max(1024)
  .refine(
    (path) => path.startsWith('/') && isPlain(path.slice(1)),
    'must be absolute, without empty parts, `.` and `..`',
  )
  .refine((path) => !/[\s,:\\\0]/.test(path), 'must not have blanks, commas, colons or backslashes')
  .refine((path) => !PLATFORM.some((own) => isWithin(path, own)), `must not be within ${PLATFORM.join(', ')}`);

const SubPath = z
  .string()
  .min(1)
  .max(1024)
  .refine((path) => isPlain(path) && !path.includes('\0'), 'must be relative, without empty parts, `.` and `..`');

export const AttachedDrive = z
  .strictObject({
    driveID: DriveID,
    source: z.strictObject({ image: ImageName }),
    readOnly: z.boolean().nullish().openapi({ description: 'whether it can only be read; true when absent' }),
    mountPath: MountPath.nullish().openapi({ description: 'folder where it is mounted; /mnt/DRIVEID when absent' }),
    subPath: SubPath.nullish().openapi({ description: 'folder of the drive that is shown there; absent: all of it' }),
    diskSizeMB: TemplateSizes.diskSizeMB,
  })
  .openapi('AttachedDrive');
export type AttachedDrive = z.output<typeof AttachedDrive>;

export const AttachedDrives = z
  .array(AttachedDrive)
  .max(MAX_ATTACHED_DRIVES, `at most ${MAX_ATTACHED_DRIVES} drives can be attached`)
  .superRefine((drives, context) => {
    const ids = new Set<string>();
    const paths = new Set<string>();
    for (const [at, drive] of drives.entries()) {
      if (ids.has(drive.driveID)) context.addIssue({ code: 'custom', message: 'used twice', path: [at, 'driveID'] });
      const path = mountPathOf(drive);
      if (paths.has(path)) context.addIssue({ code: 'custom', message: 'used twice', path: [at, 'mountPath'] });
      ids.add(drive.driveID);
      paths.add(path);
    }
  });

export function mountPathOf({ driveID, mountPath }: Pick<AttachedDrive, 'driveID' | 'mountPath'>): string {
  return mountPath ?? `/mnt/${driveID}`;
}

function isPlain(path: string): boolean {
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
