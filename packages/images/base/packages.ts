/** Host packages that this room runs, with the programs. */
export const IMAGES_HOST_PACKAGES: readonly string[] = [
  'debian-archive-keyring',
  'e2fsprogs', // e2fsck and debugfs, for tests
  'mmdebstrap',
  'python3', // compiles Python modules of images of the same release
  'tar',
  'util-linux', // unshare
];

/** What the base image has on top of Debian's essential packages. */
export const BASE_PACKAGES: readonly string[] = [
  'bash',
  'ca-certificates',
  'coreutils',
  'curl',
  'git',
  'iproute2',
  'less',
  'libc-bin', // brings C.UTF-8
  'ncurses-base', // terminfo of xterm-256color and the like
  'ncurses-bin',
  'procps',
  'python3',
  'sudo',
  'util-linux',
];
