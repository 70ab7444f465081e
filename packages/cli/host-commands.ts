/**
 * Commands of this host: they run without a daemon and are served by another program, which the launcher starts. They
 * stand here only so that help and completion know them.
 */
export const HOST_COMMANDS: readonly { readonly name: string; readonly summary: string }[] = [
  { name: 'up', summary: 'set up what is missing on this host and start the daemon' },
  { name: 'down', summary: 'stop the daemon of this host' },
  { name: 'doctor', summary: 'check this host, and mend it with --fix' },
  { name: 'cert', summary: 'make a certificate for a development domain' },
  { name: 'selftest', summary: 'try out on this host what a restore promises' },
  { name: 'storage', summary: 'show, check and free what is kept on this host' },
];
