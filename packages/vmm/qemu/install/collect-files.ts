import { cp, mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** The firmware that `-M microvm` with a PVH kernel reads; the other 40 MB are for other machines. */
const FIRMWARE = /^(qboot\.rom|pvh\.bin|kvmvapic\.bin|linuxboot.*\.bin|multiboot.*\.bin)$/;
/** Of the loadable modules only the accelerators are used: no display, no sound, no USB. */
const MODULES = /^accel-.*\.so$/;
const LIBRARIES = /\.so(\.[\d.]+)?$/;
const PROGRAM = 'qemu-system-x86_64';
const TRIPLET = 'x86_64-linux-gnu';

/**
 * Picks what a VM needs from unpacked packages: `bin`, `lib` (libraries that the host lacks), `modules`, `share`.
 * @param root folder that the packages were unpacked into; files are moved out of it
 */
export async function collectFiles(root: string, target: string): Promise<void> {
  const usrLib = join(root, 'usr', 'lib', TRIPLET);
  await move(join(root, 'usr', 'bin'), join(target, 'bin'), (name) => name === PROGRAM);
  await move(join(usrLib, 'qemu'), join(target, 'modules'), (name) => MODULES.test(name));
  await move(join(root, 'usr', 'share', 'qemu'), join(target, 'share'), (name) => FIRMWARE.test(name));
  for (const folder of [join(root, 'lib', TRIPLET), usrLib]) {
    await move(folder, join(target, 'lib'), (name) => LIBRARIES.test(name));
  }
}

async function move(from: string, to: string, wanted: (name: string) => boolean): Promise<void> {
  await mkdir(to, { recursive: true });
  const names = await readdir(from).catch(() => []);
  for (const name of names.filter(wanted)) {
    const [source, target] = [join(from, name), join(to, name)];
    try {
      await rename(source, target);
    } catch {
      await cp(source, target, { verbatimSymlinks: true, recursive: true });
    }
  }
}
