import type { HostCommandName } from './arguments.ts';

/** Help of the commands of this host; docs/reference/cli.md shows the same text. */
export const HOST_USAGE: Readonly<Record<HostCommandName, string>> = {
  up: `Usage: aenv up [--detach | --foreground] [--listen ADDR] [--config FILE]

Sets up what is missing on this host (packages, QEMU, what microVMs boot, the base image), starts the daemon and waits
until it answers. Does nothing when it runs already. Needs root.

Options:
  --detach        leave the daemon running and return (default)
  --foreground    stay, with the daemon's log on the terminal; Ctrl-C ends it as \`aenv down\` does
  --listen ADDR   address of the API, HOST:PORT or [IPV6]:PORT
  --config FILE   configuration file (TOML)`,
  down: `Usage: aenv down [--timeout SECONDS] [--config FILE]

Ends the daemon of this host. Sandboxes that run are paused and go on at the next start, or are ended, as
\`shutdown.action\` says; what became of them is printed. Exits 0 when no daemon runs.

Options:
  --timeout SECONDS   time to wait until it has ended (default: \`shutdown.timeout_seconds\` and 30)
  --config FILE       configuration file (TOML)`,
  doctor: `Usage: aenv doctor [--fix] [--output table|json] [--config FILE]

Checks this host: each line says whether it is in order, why not, and the command that mends it. Exits 1 when something
is not.

Options:
  --fix           mend what can be mended, then check again
  --output FORM   table (default) or json
  --config FILE   configuration file (TOML)`,
  storage: `Usage: aenv storage stat|verify|gc [--output table|json] [--config FILE]
       aenv storage gc [--all] [--dry-run]

Shows what is kept on this host, checks it, and removes what nobody needs. A daemon may run meanwhile.

  stat      what is kept where, its size, and how much of it nobody refers to
  verify    reads everything and compares it with its checksums; names each damaged file and exits 1 if there is one
  gc        removes what no template, sandbox, snapshot or running process of any home refers to and that was not used
            for \`storage.keep_unused_hours\`; asks the daemon to do so if it runs

Options:
  --all           of gc: also what was used lately
  --dry-run       of gc: show what would be removed, and leave it
  --output FORM   table (default) or json
  --config FILE   configuration file (TOML)`,
  cert: `Usage: aenv cert [--domain NAME] [--out DIR] [--config FILE]

Makes a private authority and a certificate for a development domain and all names below it, so that the daemon can serve
HTTPS. What is there already is kept while it is good; a certificate that ends within 30 days is renewed. Prints what to
set for the daemon and for clients.

Options:
  --domain NAME   the domain (default: the first of \`proxy.domains\`, else aenv.localhost)
  --out DIR       folder of the files (default: \`tls\` in the home folder)
  --config FILE   configuration file (TOML)`,
  selftest: `Usage: aenv selftest restore [--output table|json] [--config FILE]

Pauses, resumes, forks and creates sandboxes on this host and checks everything that can go wrong when a machine goes on
that stood still: clocks, random numbers, names, tokens, connections, disk, hooks. Uses the daemon that runs here and
touches no sandbox but its own four; where none runs, it starts one of its own for the time. Takes about a minute. Exits 1
when something does not hold. Needs root.

Options:
  --output FORM   table (default) or json
  --config FILE   configuration file (TOML)`,
};

export const ALL_USAGE = `Commands of this host:
  up        set up what is missing on this host and start the daemon
  down      stop the daemon of this host
  doctor    check this host, and mend it with --fix
  cert      make a certificate for a development domain
  selftest  try out on this host what a restore promises
  storage   show, check and free what is kept on this host

\`aenv COMMAND --help\` tells more; \`aenv --help\` lists the commands that talk to a server.`;
