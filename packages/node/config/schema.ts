import { z } from 'zod';
import { absolutePath, cidr4, domain, type KeyMeta, keyMeta, listenAddress } from './values.ts';

/** A key with its default (as TOML would spell it) and what the reference says of it. */
function key<T extends z.ZodType>(schema: T, fallback: z.input<T>, meta: KeyMeta) {
  const result = z.prefault(schema, fallback);
  keyMeta.add(result, meta);
  return result;
}

/** A key that has no value unless it is set. */
function unset<T extends z.ZodType>(schema: T, meta: KeyMeta) {
  const result = z.optional(schema);
  keyMeta.add(result, meta);
  return result;
}

const integer = (low: number, high = Number.MAX_SAFE_INTEGER) => z.int().min(low).max(high);

/**
 * Every key of the configuration: the source of validation, of the types and of docs/reference/configuration.md. A
 * member `maxSandboxes` of section `limits` is the TOML key `limits.max_sandboxes` and the environment variable
 * AENV_LIMITS_MAX_SANDBOXES. Secrets have no place here, so that a configuration can be printed and shared.
 */
export const ConfigSchema = z.strictObject({
  home: key(absolutePath, '/var/lib/aenv', {
    kind: 'string',
    meaning: 'folder of all that lasts: ledger, secrets, templates, assets',
  }),
  runtime: key(absolutePath, '/run/aenv', {
    kind: 'string',
    meaning: 'folder of what lasts as long as the host is up: sockets, run folders of microVMs',
  }),
  assets: unset(absolutePath, {
    kind: 'string',
    meaning: 'folder of kernel, initramfs, tools drive and downloads; content-addressed, may be shared by homes',
    defaultText: '$home/assets',
  }),
  listen: key(listenAddress, '127.0.0.1:8000', {
    kind: 'string',
    meaning: 'address of the API and the proxy, HOST:PORT or [IPV6]:PORT',
  }),
  tls: z
    .strictObject({
      cert: unset(absolutePath, {
        kind: 'string',
        meaning: 'certificate (PEM, its chain behind it) for HTTPS; read again when the file changes',
        defaultText: 'no HTTPS',
      }),
      key: unset(absolutePath, {
        kind: 'string',
        meaning: 'private key of the certificate (PEM), not readable by every user; set together with `tls.cert`',
        defaultText: 'no HTTPS',
      }),
      listen: key(listenAddress, '127.0.0.1:8443', {
        kind: 'string',
        meaning: 'address of API and proxy over HTTPS, with HTTP/2; used where `tls.cert` and `tls.key` are set',
      }),
    })
    .prefault({}),
  limits: z
    .strictObject({
      maxTimeoutSeconds: key(integer(1, 31_536_000), 86_400, {
        kind: 'integer',
        meaning: 'longest time to live that a client may ask for, in seconds',
      }),
      maxSandboxes: key(integer(1), 1000, { kind: 'integer', meaning: 'sandboxes that may be alive at the same time' }),
      maxConcurrentStarts: unset(integer(1, 1024), {
        kind: 'integer',
        meaning: 'microVMs that may boot at the same time; a boot takes a whole core',
        defaultText: 'as many as the host has CPUs',
      }),
      maxQueuedStarts: key(integer(0), 64, {
        kind: 'integer',
        meaning: 'starts that may wait for their turn; one more is refused with `capacity_exhausted`',
      }),
      memoryShare: key(z.number().min(0).max(1), 0.5, {
        kind: 'number',
        meaning: "share of a guest's memory that the host must have free to start it; 0 switches the check off",
      }),
      jsonBodyBytes: key(integer(1024, 64 * 1024 * 1024), 1024 * 1024, {
        kind: 'integer',
        meaning: 'largest JSON body of the API, in bytes',
      }),
    })
    .prefault({}),
  templates: z
    .strictObject({
      capture: key(z.boolean(), true, {
        kind: 'boolean',
        meaning: 'whether a booted microVM of each template is captured, and sandboxes continue it; false: they boot',
      }),
    })
    .prefault({}),
  warm: z
    .strictObject({
      low: key(integer(0, 1024), 1, {
        kind: 'integer',
        meaning: 'sandboxes-to-be of a template that stand ready; fewer than this, and more are prepared',
      }),
      high: key(integer(0, 1024), 0, {
        kind: 'integer',
        meaning: 'how many of a template are prepared then; each takes some 140 MiB; 0 switches this off',
      }),
      templates: key(integer(1, 1024), 2, {
        kind: 'integer',
        meaning: 'templates for which they are kept, those that were asked for last',
      }),
      idleSeconds: key(integer(1), 600, {
        kind: 'integer',
        meaning:
          'seconds without a create after which a template keeps only `low` of them, or none when another one was asked ' +
          'for since',
      }),
      answerSeconds: key(integer(1, 600), 10, {
        kind: 'integer',
        meaning:
          'seconds that one may take to answer when it becomes a sandbox; one that takes longer is given up, and the ' +
          'create starts another',
      }),
    })
    .prefault({}),
  paused: z
    .strictObject({
      ttlSeconds: unset(integer(1, 315_360_000), {
        kind: 'integer',
        meaning: 'how long a sandbox may be paused before it is deleted, in seconds',
        defaultText: 'for ever',
      }),
      max: unset(integer(0, 1_000_000), {
        kind: 'integer',
        meaning: 'sandboxes that may be paused at the same time; one more is refused and runs on',
        defaultText: 'as many as the disk holds',
      }),
      maxBytes: unset(integer(0), {
        kind: 'integer',
        meaning: 'space that paused sandboxes may take together, memory and disks of their own, in bytes',
        defaultText: 'as much as the disk holds',
      }),
    })
    .prefault({}),
  snapshots: z
    .strictObject({
      max: unset(integer(0, 1_000_000), {
        kind: 'integer',
        meaning: 'snapshots that there may be at the same time; one more is refused with `capacity_exhausted`',
        defaultText: 'as many as the disk holds',
      }),
      maxBytes: unset(integer(0), {
        kind: 'integer',
        meaning:
          'space that snapshots may take together, memory and disks of their own, in bytes; what they share is counted with ' +
          'each',
        defaultText: 'as much as the disk holds',
      }),
    })
    .prefault({}),
  shutdown: z
    .strictObject({
      action: key(z.enum(['pause', 'kill']), 'pause', {
        kind: 'string',
        meaning:
          'what an orderly end of the daemon does with sandboxes that run: `pause`, and the next start lets them go on; ' +
          '`kill`. One that cannot be paused is ended',
      }),
      timeoutSeconds: key(integer(0, 3600), 60, {
        kind: 'integer',
        meaning: 'time for these pauses, in seconds; sandboxes whose turn has not come by then are ended',
      }),
    })
    .prefault({}),
  recovery: z
    .strictObject({
      action: key(z.enum(['adopt', 'remove']), 'adopt', {
        kind: 'string',
        meaning:
          'what the start after a crash does with microVMs that have outlived the daemon: `adopt`, their sandboxes run on; ' +
          '`remove`, they are lost',
      }),
    })
    .prefault({}),
  ledger: z
    .strictObject({
      keepEndedDays: key(integer(0, 3650), 7, {
        kind: 'integer',
        meaning: 'days for which ended sandboxes are remembered with their reason',
      }),
      keepEnded: key(integer(0, 1_000_000), 10_000, {
        kind: 'integer',
        meaning: 'ended sandboxes that are remembered at most',
      }),
    })
    .prefault({}),
  network: z
    .strictObject({
      cidr: unset(cidr4, {
        kind: 'string',
        meaning: 'range for the host side of the slots',
        defaultText: 'a private range that the host does not use',
      }),
      slotsLow: key(integer(0, 4096), 2, {
        kind: 'integer',
        meaning: 'slots kept ready also while sandboxes are created',
      }),
      slotsHigh: key(integer(1, 4096), 6, { kind: 'integer', meaning: 'slots made ready while no sandbox is created' }),
      uidBase: key(integer(1000, 2_000_000_000), 790_000, {
        kind: 'integer',
        meaning: 'first of the uids that VM processes run as, one for each slot; no accounts are made',
      }),
      alwaysDeniedCidrs: key(z.array(cidr4), [], {
        kind: 'list of strings',
        meaning: 'IPv4 ranges that no sandbox reaches, beside the host, other sandboxes and metadata addresses',
      }),
    })
    .prefault({}),
  storage: z
    .strictObject({
      uid: key(integer(1000, 2_000_000_000), 789_999, {
        kind: 'integer',
        meaning: 'uid that the block daemon runs as, which reads and writes the disks of sandboxes; no account is made',
      }),
      keepFreeBytes: key(integer(0), 256 * 1024 ** 2, {
        kind: 'integer',
        meaning:
          "space of the home's file system that pauses, snapshots and forks leave free, in bytes; one for which there may " +
          'not be room is refused with `no_space` before anything is done',
      }),
      ioThreads: unset(integer(1, 64), {
        kind: 'integer',
        meaning: 'threads of the block daemon that serve disks; one serves hundreds',
        defaultText: 'one for each 8 CPUs, at least 1, at most 4',
      }),
      keepUnusedHours: key(integer(0, 87_600), 168, {
        kind: 'integer',
        meaning:
          'hours for which assets stay that nothing needs any more: layers of removed templates, captured machines, old kernels and tools drives',
      }),
    })
    .prefault({}),
  vmm: z
    .strictObject({
      accelerator: key(z.enum(['auto', 'kvm', 'tcg']), 'auto', {
        kind: 'string',
        meaning: '`auto` takes KVM where a test boot with it works, else TCG; `kvm` and `tcg` force one',
      }),
      qemu: unset(absolutePath, {
        kind: 'string',
        meaning: 'path of the QEMU program, in place of the one that is found or fetched',
        defaultText: 'found on the host or fetched',
      }),
      bootTimeoutMs: key(integer(1000, 600_000), 30_000, {
        kind: 'integer',
        meaning: 'time that a booting microVM may go without a sign of life, in ms; after it the boot counts as hung',
      }),
      bootAttempts: key(integer(1, 10), 3, { kind: 'integer', meaning: 'boots that are tried before a create fails' }),
    })
    .prefault({}),
  restore: z
    .strictObject({
      hooksSeconds: key(integer(1, 3600), 10, {
        kind: 'integer',
        meaning:
          'time for all hooks of a guest together (`/etc/aenv/on-resume.d`, `/etc/aenv/on-fork.d`), in seconds; what runs then is killed',
      }),
    })
    .prefault({}),
  proxy: z
    .strictObject({
      domains: key(z.array(domain), [], {
        kind: 'list of strings',
        meaning:
          'domains whose labels PORT-ID lead here; clients are told the first one. Labels under any other domain work too',
      }),
      connectTimeoutMs: key(integer(100, 600_000), 5000, {
        kind: 'integer',
        meaning: 'time to connect to a port of a sandbox, in ms',
      }),
      maxConnectionsPerSandbox: key(integer(1, 65_536), 512, {
        kind: 'integer',
        meaning: 'requests and upgraded connections of one sandbox at a time; one more is answered with 429',
      }),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      sampleSeconds: key(integer(1, 3600), 5, {
        kind: 'integer',
        meaning: 'time between two looks at the load and the processes of a running sandbox, in seconds',
      }),
      keepSeconds: key(integer(60, 86_400), 3600, {
        kind: 'integer',
        meaning: 'how far back the load of a running sandbox is remembered, in seconds',
      }),
    })
    .prefault({}),
  registry: z
    .strictObject({
      search: key(z.array(z.string()), ['docker.io'], {
        kind: 'list of strings',
        meaning: 'registries where an image is looked for whose name has no host, in this order',
      }),
      allowed: unset(z.array(z.string()), {
        kind: 'list of strings',
        meaning: 'the only registries that images may come from; an empty list allows none',
        defaultText: 'all',
      }),
      insecure: key(z.array(z.string()), [], {
        kind: 'list of strings',
        meaning: 'registries, HOST or HOST:PORT, whose certificates are not looked at, and that may speak plain HTTP',
      }),
      mirrors: key(z.array(z.string()), [], {
        kind: 'list of strings',
        meaning: '`HOST=MIRROR` or `HOST=MIRROR/PREFIX`: what is asked before a registry, in this order',
      }),
      ca: key(z.array(z.string()), [], {
        kind: 'list of strings',
        meaning: '`HOST=FILE`: authorities (PEM) that a registry is trusted by, beside those of the system',
      }),
      dockerConfig: unset(absolutePath, {
        kind: 'string',
        meaning: "Docker's config.json with credentials and credential helpers; read anew for each image",
        defaultText: '`config.json` in `$DOCKER_CONFIG` or `~/.docker`',
      }),
      offlineAfterSeconds: key(integer(1, 3600), 30, {
        kind: 'integer',
        meaning:
          'how long a guest waits for a part of its disk that a registry does not give, before it gets an I/O error',
      }),
      completeLayers: key(z.boolean(), true, {
        kind: 'boolean',
        meaning:
          'whether the rest of a layer that is read on demand is fetched in the background, and its digest compared',
      }),
      completeAfterSeconds: key(integer(0, 86_400), 30, {
        kind: 'integer',
        meaning: 'how long after its first use the rest of such a layer begins to be fetched',
      }),
      cacheBytes: key(integer(64 * 1024 * 1024), 20 * 1024 ** 3, {
        kind: 'integer',
        meaning: 'space for parts of layers that are read on demand, in bytes',
      }),
      cacheKeepFreeBytes: key(integer(0), 2 * 1024 ** 3, {
        kind: 'integer',
        meaning: 'space of the file system that these parts leave free, in bytes',
      }),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: key(z.enum(['debug', 'info', 'warn', 'error']), 'info', {
        kind: 'string',
        meaning: 'least level that is logged',
      }),
      file: unset(absolutePath, {
        kind: 'string',
        meaning: 'file that log lines are appended to',
        defaultText: 'standard output',
      }),
    })
    .prefault({}),
});

type Parsed = z.output<typeof ConfigSchema>;

/** The configuration of a node, complete and checked. */
export type Config = Omit<Parsed, 'assets'> & { readonly assets: string };
