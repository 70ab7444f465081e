import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isAtLeast, SAFE_VERSION } from '@aenv/vmm/qemu/install/version.ts';
import { keyFile } from '../../auth/key-file.ts';
import type { Config } from '../../config/schema.ts';
import { formatAddress } from '../daemon/port.ts';
import { formatBytes } from '../terminal/output.ts';
import { checkCertificate } from './certificate-check.ts';
import { type Finding, fail, ok, warn } from './check.ts';
import type { HostMends, HostProbes } from './probes.ts';

export interface CheckContext {
  readonly config: Config;
  readonly probes: HostProbes;
  readonly mends: HostMends;
}

/** A check gives one finding, or several about one subject. It may throw an AenvError, which is a finding too. */
export interface Check {
  readonly name: string;
  run(context: CheckContext): Promise<Finding | readonly Finding[]>;
}

const FIX = 'aenv doctor --fix';
const LOW_DISK = 4 * 2 ** 30;
const NO_DISK = 2 ** 30;
const LOW_MEMORY = 2 * 2 ** 30;
const NO_MEMORY = 512 * 2 ** 20;

export const CHECKS: readonly Check[] = [
  {
    name: 'root',
    run: async ({ probes }) =>
      probes.uid === 0 ? ok('root', 'runs as root') : fail('root', `runs as uid ${probes.uid}`, 'sudo aenv doctor'),
  },
  {
    name: 'machine',
    run: async ({ probes }) =>
      probes.arch === 'x64'
        ? ok('machine', 'x86-64')
        : fail('machine', `${probes.arch} is not supported`, 'use an x86-64 machine'),
  },
  { name: 'system', run: async ({ probes }) => ok('system', `Debian ${await probes.release()}`) },
  { name: 'packages', run: checkPackages },
  { name: 'QEMU', run: checkQemu },
  { name: 'acceleration', run: checkAcceleration },
  { name: 'network', run: checkNetwork },
  {
    name: 'addresses',
    run: async ({ probes }) =>
      (await probes.daemon()) === undefined
        ? ok('addresses', `${await probes.range()} is free for sandboxes`)
        : ok('addresses', 'chosen by the running daemon'),
  },
  {
    name: 'home folder',
    run: async ({ config, probes }) => {
      await probes.reachable();
      return ok('home folder', `${config.home} can be reached by microVMs`);
    },
  },
  { name: 'disk', run: checkDisk },
  { name: 'memory', run: checkMemory },
  { name: 'key file', run: checkSecrets },
  { name: 'certificate', run: checkCertificate },
  { name: 'daemon', run: checkDaemon },
];

async function checkPackages({ probes, mends }: CheckContext): Promise<Finding> {
  const missing = await probes.missingPackages();
  if (missing.length === 0) return ok('packages', 'all installed');
  return fail('packages', `not installed: ${missing.join(' ')}`, FIX, () => mends.installPackages(missing));
}

async function checkQemu({ probes, mends }: CheckContext): Promise<Finding> {
  const found = await probes.qemu();
  if (found === undefined) return fail('QEMU', 'none that runs', FIX, () => mends.fetchQemu());
  const origins = {
    host: "the host's own",
    backports: 'from backports, beside the packages of the host',
    release: 'from the release, beside the packages of the host',
    configuration: 'named by the configuration',
  };
  const detail = `${found.version}, ${origins[found.origin]} (${found.path})`;
  if (isAtLeast(found.version, SAFE_VERSION)) return ok('QEMU', detail);
  return warn('QEMU', `${detail}: older than ${SAFE_VERSION}, so guests share no memory base`, FIX, () =>
    mends.fetchQemu(),
  );
}

async function checkAcceleration({ probes }: CheckContext): Promise<Finding> {
  const { accelerator, reason } = await probes.accelerator();
  if (accelerator === 'tcg') return ok('acceleration', `none (TCG), everything works but slower: ${reason}`);
  return ok('acceleration', accelerator === 'kvm' ? `KVM: ${reason}` : reason);
}

async function checkNetwork({ probes, mends }: CheckContext): Promise<readonly Finding[]> {
  const findings = await probes.network();
  return findings.map(({ name, ok: good, detail, remedy }) => {
    if (good) return ok(name, detail);
    const mend = name === 'tap devices' ? () => mends.openTun() : undefined;
    return fail(name, detail, remedy, mend);
  });
}

async function checkDisk({ probes }: CheckContext): Promise<Finding> {
  const { folder, freeBytes, type } = await probes.disk();
  const detail = `${formatBytes(freeBytes)} free on ${type} (${folder})`;
  const remedy = 'free space, or put the home folder elsewhere with AENV_HOME';
  if (freeBytes < NO_DISK) return fail('disk', detail, remedy);
  if (freeBytes < LOW_DISK) return warn('disk', detail, remedy);
  if (type === 'tmpfs') return warn('disk', `${detail}: it is gone after a reboot, and takes memory`, remedy);
  return ok('disk', detail);
}

async function checkMemory({ probes }: CheckContext): Promise<Finding> {
  const bytes = await probes.availableMemory();
  const detail = `${formatBytes(bytes)} available`;
  const remedy = 'end programs that need much, or use a larger machine';
  if (bytes < NO_MEMORY) return fail('memory', detail, remedy);
  return bytes < LOW_MEMORY ? warn('memory', detail, remedy) : ok('memory', detail);
}

async function checkSecrets({ config, probes, mends }: CheckContext): Promise<Finding> {
  const path = keyFile(config.home);
  const mode = await probes.mode(path);
  if (mode === undefined) return ok('key file', `${path} is made when the daemon starts for the first time`);
  if ((mode & 0o077) === 0) return ok('key file', `${path} is readable by its owner only`);
  const detail = `${path} is readable by others (${mode.toString(8).padStart(4, '0')})`;
  return fail('key file', detail, `chmod 600 ${path}`, () => mends.closeSecrets());
}

async function checkDaemon({ config, probes }: CheckContext): Promise<Finding> {
  const daemon = await probes.daemon();
  if (daemon === undefined) {
    await probes.portFree(config.listen);
    return ok('daemon', `does not run; ${formatAddress(config.listen)} is free`);
  }
  if (daemon.healthy) return ok('daemon', `answers at ${daemon.url} (pid ${daemon.pid})`);
  return fail('daemon', `runs (pid ${daemon.pid}), but ${daemon.url} does not answer`, 'aenv down, then aenv up');
}

/** Runs all checks; what a check throws becomes its finding. */
export async function runChecks(context: CheckContext, checks: readonly Check[] = CHECKS): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const check of checks) {
    try {
      findings.push(...[await check.run(context)].flat());
    } catch (thrown) {
      const error = AenvError.from(thrown, thrown instanceof Error ? thrown.message : String(thrown));
      findings.push(fail(check.name, error.message, error.remediation));
    }
  }
  return findings;
}
