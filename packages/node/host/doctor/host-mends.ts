import { chmod } from 'node:fs/promises';
import { dirname } from 'node:path';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { ensureQemu } from '@aenv/vmm/qemu/install/ensure.ts';
import { openTunToUsers } from '@aenv/vmm/qemu/tun-access.ts';
import { keyFile } from '../../auth/key-file.ts';
import type { Config } from '../../config/schema.ts';
import type { HostMends } from './probes.ts';

/** What `--fix` does to this host. */
export function hostMends(config: Config, log: Logger, signal: AbortSignal): HostMends {
  return {
    installPackages: (names) => installPackages(names, { log, signal }),
    fetchQemu: async () => {
      await ensureQemu({ assetsDir: config.assets, log, signal });
    },
    openTun: () => openTunToUsers(log),
    closeSecrets: async () => {
      const path = keyFile(config.home);
      await chmod(path, 0o600);
      await chmod(dirname(path), 0o700);
    },
  };
}
