import { realpath } from 'node:fs/promises';
import { isCode } from '@aenv/images/errors/is-code.ts';
import { assetPlaces } from '../../assets/places.ts';
import type { Folders } from '../../daemon/folders.ts';
import type { SnapshotVerification } from '../../snapshots/contract.ts';
import { Checks } from '../../snapshots/repository/checks.ts';
import { verifyAssets } from './assets.ts';
import { verifyHome } from './home.ts';
import type { VerifyProgress } from './progress.ts';

/**
 * Reads all that is kept on this host and compares it with what it should be. It reads only, so a daemon may run
 * meanwhile; what is removed or replaced under its eyes is no fault.
 */
export async function verifyStorage(
  assetsDir: string,
  folders: Pick<Folders, 'snapshots' | 'volumes'>,
  progress: VerifyProgress = () => {},
): Promise<SnapshotVerification> {
  const checks = new Checks();
  const root = await realpath(assetsDir).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (root !== undefined) await verifyAssets(assetPlaces(root), checks, progress);
  progress({ what: 'home', done: 0, of: 1, checkedBytes: checks.checkedBytes });
  await verifyHome(folders, checks);
  progress({ what: 'home', done: 1, of: 1, checkedBytes: checks.checkedBytes });
  return checks;
}
