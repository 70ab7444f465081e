/** A QEMU that runs on this host. */
export interface QemuInstall {
  /** `MAJOR.MINOR.MICRO` */
  readonly version: string;
  /** absolute path of qemu-system-x86_64 */
  readonly system: string;
  /** folder with the firmware of the same version; the binary's own when absent */
  readonly dataDir?: string;
  /** what it needs in its environment to find modules and libraries */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Which QEMU to take. `auto`: the host's own when it is 8.2 or newer, else the backports of its release side by side,
 * else whatever there is. `backports` and `release` take the packages of that suite side by side in any case.
 */
export type QemuPreference = 'auto' | 'backports' | 'release';
