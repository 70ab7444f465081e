import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DebFile } from '@aenv/platform/debian/contract.ts';
import { downloadPackages } from '@aenv/platform/debian/download.ts';
import { hostCodename } from '@aenv/platform/debian/host.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { QemuInstall, QemuPreference } from './qemu-install.ts';
import { makeSideBySide, openSideBySide } from './side-by-side.ts';
import { findSystemQemu } from './system.ts';
import { isAtLeast, SAFE_VERSION } from './version.ts';

export interface EnsureQemuOptions {
  /** cache of everything that VMs boot from; users that VMs run as must be able to read it */
  readonly assetsDir: string;
  readonly log: Logger;
  readonly signal?: AbortSignal;
  /** default `auto` */
  readonly prefer?: QemuPreference;
  /** where the host's programs are looked for; default $PATH */
  readonly searchPath?: string;
  /** how packages are fetched; default: from the host's Debian mirror */
  readonly download?: (suite: string, packages: readonly string[]) => Promise<readonly DebFile[]>;
  /** code name of the host's release; default: what the host says */
  readonly codename?: string;
}

/**
 * A QEMU that runs on this host, got from Debian's mirror when there is none that is new enough. The host's packages
 * are never replaced. A version before 8.2 is taken as a last resort, with a warning.
 * @throws AenvError `qemu_missing` when none can be had
 */
export async function ensureQemu(options: EnsureQemuOptions): Promise<QemuInstall> {
  const { log, signal, prefer = 'auto' } = options;
  const failures: unknown[] = [];
  const candidates: (() => Promise<QemuInstall | undefined>)[] = [];
  const system = await findSystemQemu(options.searchPath ?? process.env.PATH ?? '', signal);
  if (prefer === 'auto' && system !== undefined && isAtLeast(system.version, SAFE_VERSION)) return system;
  if (prefer !== 'release') candidates.push(() => fromSuite(options, 'backports'));
  if (prefer === 'auto') candidates.push(async () => system);
  if (prefer !== 'backports') candidates.push(() => fromSuite(options, 'release'));

  for (const candidate of candidates) {
    try {
      const install = await candidate();
      if (install === undefined) continue;
      if (!isAtLeast(install.version, SAFE_VERSION)) warnOfOldVersion(log, install, failures);
      return install;
    } catch (error) {
      signal?.throwIfAborted();
      failures.push(error);
    }
  }
  const reasons = failures.map((error) => (error instanceof Error ? error.message : String(error)));
  throw new AenvError('qemu_missing', `no usable QEMU on this host: ${reasons.join('; ') || 'not installed'}`, {
    cause: new AggregateError(failures),
  });
}

async function fromSuite(options: EnsureQemuOptions, kind: 'backports' | 'release'): Promise<QemuInstall> {
  const { assetsDir, log, signal } = options;
  const codename = options.codename ?? (await hostCodename());
  const suite = kind === 'backports' ? `${codename}-backports` : codename;
  const made = await openSideBySide(assetsDir, suite, signal);
  if (made !== undefined) return made;
  log.info('unpacking QEMU beside the packages of this host', { suite });
  const cancel = signal === undefined ? {} : { signal };
  const download =
    options.download ??
    ((from: string, packages: readonly string[]) =>
      downloadPackages(
        { suite: from, packages, withDependencies: true },
        { workDir: join(assetsDir, 'apt'), log, ...cancel },
      ));
  return makeSideBySide({ assetsDir, suite, download, ...cancel });
}

function warnOfOldVersion(log: Logger, install: QemuInstall, failures: readonly unknown[]): void {
  log.warn('QEMU is older than 8.2: a guest’s memory base is not protected from its own VMM, so it is not shared', {
    version: install.version,
    path: install.system,
    reasons: failures.map((error) => (error instanceof Error ? error.message : String(error))),
  });
}
