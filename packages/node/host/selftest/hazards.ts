/** What can go wrong when a machine goes on that has stood still, or goes on twice. */
export interface Hazard {
  readonly name: HazardName;
  /** what holds */
  readonly promise: string;
  /** what to look at when it does not */
  readonly remedy: string;
}

export const HAZARD_NAMES = [
  'wall clock',
  'monotonic clock',
  'kernel random numbers',
  'user code before the restore is over',
  'random numbers of programs',
  'host name',
  'machine-id',
  'boot id',
  'tokens',
  'connections from outside',
  'loopback connections',
  'names and routes',
  'disk and memory',
  'egress rules',
  'hooks',
  'ping',
] as const;
export type HazardName = (typeof HAZARD_NAMES)[number];

const LOG = 'Look for the sandbox in the log of the daemon and in `aenv logs`, and report it with both.';
const FREEZE =
  'The guest needs cgroup v2 with the freezer: boot it with the kernel that aenv brings, and look for "captured with its programs running" in the log of the daemon.';

/** In the order in which they are shown; docs/restore-contract.md tells more of each. */
export const HAZARDS: readonly Hazard[] = [
  {
    name: 'wall clock',
    promise: 'the first command sees the time of the host, to a second',
    remedy: 'Check that the clock of this host is set (`timedatectl`); a guest gets its time from there.',
  },
  { name: 'monotonic clock', promise: 'goes on where it stood, without the time of the pause', remedy: LOG },
  {
    name: 'kernel random numbers',
    promise: 'differ between all that go on from the same machine',
    remedy:
      'Do not use clones for secrets until it holds: the guest kernel does not reseed. Use the kernel that aenv brings.',
  },
  {
    name: 'user code before the restore is over',
    promise: 'programs stand still until clock and generator are right',
    remedy: FREEZE,
  },
  {
    name: 'random numbers of programs',
    promise: 'a hook can have programs reseed: it runs with the new entropy',
    remedy: 'Check that hooks run (below); a program that has seeded itself before has to be told.',
  },
  { name: 'host name', promise: 'is kept by a resume and renewed for a fork and a create', remedy: LOG },
  { name: 'machine-id', promise: 'is kept by a resume and renewed for a fork and a create', remedy: LOG },
  {
    name: 'boot id',
    promise: 'is that of the kernel: kept by a resume and a fork, another one for each create',
    remedy: LOG,
  },
  { name: 'tokens', promise: 'are kept by a resume and renewed for a fork; the old ones do not open it', remedy: LOG },
  {
    name: 'connections from outside',
    promise: 'end with an error at once, in the guest and for its clients',
    remedy: 'The guest kernel needs CONFIG_INET_DIAG_DESTROY and tcp_diag: use the kernel that aenv brings.',
  },
  { name: 'loopback connections', promise: 'go on, with nothing lost', remedy: LOG },
  {
    name: 'names and routes',
    promise: 'the resolver answers in the first second',
    remedy: 'Run `aenv doctor`: the forwarder of the daemon answers guests at 169.254.0.22.',
  },
  {
    name: 'disk and memory',
    promise: 'are of one instant, unsynced writes included',
    remedy: 'Run `aenv storage verify`.',
  },
  { name: 'egress rules', promise: 'hold again before anything runs', remedy: 'Run `aenv doctor` and check nftables.' },
  {
    name: 'hooks',
    promise: 'run in order, a failing or hanging one stops nothing, and all is in the log of the sandbox',
    remedy: 'Hooks are executables in /etc/aenv/on-resume.d and on-fork.d; `restore.hooks_seconds` limits them.',
  },
  { name: 'ping', promise: 'envd has answered before the sandbox counts as running', remedy: LOG },
];
