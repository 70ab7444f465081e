/** Where things are inside a guest. The native init, the tools drive and envd all follow this file. */
export const GUEST_LAYOUT = {
  /** tmpfs folder of the platform, root only where a file needs it */
  runDir: '/run/aenv',
  /** mount point of the read-only tools drive */
  toolsDir: '/run/aenv/tools',
  /** the static multi-call program: applets spawn, xattr, watch, clock, restore, mount */
  native: '/run/aenv/tools/bin/aenv-guest',
  /** envd's state that must survive its restart (mode 0600): host secret, tokens, defaults */
  stateFile: '/run/aenv/envd.json',
  /** envd, a bundle for the runtime, and the code that the runtime's engine made of it when the drive was built */
  program: '/run/aenv/tools/envd.cjs',
  programCode: '/run/aenv/tools/envd.code',
  /** the file on the tools drive whose lines are envd's argument vector */
  envdArgv: '/run/aenv/tools/envd.argv',
} as const;

/** File-system label of every root filesystem; the guest finds its root by it. */
export const ROOT_LABEL = 'aenv-root';

/**
 * What an attached drive is called by: its file-system label, of at most 16 characters, and its name on the machine.
 * @param number of the drive in its sandbox, from 1
 */
export const attachedDriveLabel = (number: number): string => `aenv-drive-${number}`;

/** Drives that can be attached to a sandbox, besides its root and the platform's tools. */
export const MAX_ATTACHED_DRIVES = 14;
