import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const OTHERS_EXECUTE = 0o001;

/**
 * Makes sure that a process without any rights of its own can walk down to `folder`: VMs run as uids that own nothing
 * but their volume, and a home folder inside, say, /root (0700) would fail only when the first VM boots.
 * @throws AenvError `host_unsupported` that names the folder in the way
 */
export async function assertSearchable(folder: string): Promise<void> {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const { mode } = await stat(at);
    if ((mode & OTHERS_EXECUTE) === 0) {
      throw new AenvError('host_unsupported', `VM processes cannot pass through ${at}: others may not search it`, {
        remediation: `Run \`chmod o+x ${at}\`, or choose another home folder with AENV_HOME.`,
      });
    }
    if (at === dirname(at)) return;
  }
}
