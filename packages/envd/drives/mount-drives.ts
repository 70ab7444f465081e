import { mkdir, readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GuestDrive } from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { GUEST_LAYOUT } from '@aenv/contracts/guest/layout.ts';
import { type DevicePlaces, findDrive, GUEST_DEVICES } from './find-drive.ts';

/** Arguments of the applet `mount`. */
export type Mount = (args: readonly [source: string, target: string, mode: 'ro' | 'rw' | 'bind']) => Promise<void>;

export interface MountPlaces extends DevicePlaces {
  /** mounts of this process, as in proc_pid_mounts(5) */
  readonly mounts: string;
  /** folder where drives are mounted of which only a part is shown */
  readonly drivesDir: string;
}

const GUEST_PLACES: MountPlaces = {
  ...GUEST_DEVICES,
  mounts: '/proc/self/mounts',
  drivesDir: join(GUEST_LAYOUT.runDir, 'drives'),
};

/**
 * Mounts drives, those of short paths first, so that one can lie within another one. What is mounted already stays, as
 * after a call whose answer was lost.
 * @throws AenvError `drive_unusable` that names the drive's path
 */
export async function mountDrives(
  drives: readonly GuestDrive[],
  mount: Mount,
  places: MountPlaces = GUEST_PLACES,
): Promise<void> {
  for (const drive of drives.toSorted((a, b) => a.mountPath.length - b.mountPath.length)) {
    try {
      await mountDrive(drive, mount, places);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new AenvError('drive_unusable', `the drive for ${drive.mountPath} cannot be mounted: ${why}`, {
        cause: error,
      });
    }
  }
}

async function mountDrive(drive: GuestDrive, mount: Mount, places: MountPlaces): Promise<void> {
  const { label, mountPath, readOnly, subPath } = drive;
  const device = await findDrive(label, places);
  if (device === undefined) throw new Error(`there is no drive ${label}`);
  const mode = readOnly ? 'ro' : 'rw';
  if (subPath === undefined) {
    const target = await folder(mountPath);
    if (!(await isMounted(device, target, places))) await mount([device, target, mode]);
    return;
  }
  // What is not shown is for nobody but root to see.
  await mkdir(places.drivesDir, { recursive: true, mode: 0o700 });
  const whole = await folder(join(places.drivesDir, label));
  if (!(await isMounted(device, whole, places))) await mount([device, whole, mode]);
  const part = await realpath(join(whole, subPath));
  // A link of the drive must not lead out of it.
  if (!part.startsWith(`${whole}/`)) throw new Error(`${subPath} leads out of the drive`);
  if (!(await stat(part)).isDirectory()) throw new Error(`${subPath} of the drive is no folder`);
  const target = await folder(mountPath);
  if (!(await isMounted(device, target, places))) await mount([part, target, 'bind']);
}

/** A folder that is there, or is made now; its real path, since that is what the kernel tells of mounts. */
async function folder(path: string): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o755 });
  const real = await realpath(path);
  if (!(await stat(real)).isDirectory()) throw new Error(`${path} is no folder`);
  return real;
}

async function isMounted(device: string, target: string, { mounts }: MountPlaces): Promise<boolean> {
  const lines = (await readFile(mounts, 'utf8')).split('\n');
  return lines.some((line) => {
    const [source = '', place = ''] = line.split(' ');
    return source === device && withoutEscapes(place) === target;
  });
}

/** proc_pid_mounts(5): blanks, tabs, line ends and backslashes are octal. */
function withoutEscapes(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_match, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
