import type { ImageConfig } from '../oci/image-config.ts';
import type { Account } from './accounts.ts';

/** Who and where commands of a sandbox are by default. */
export interface ImageStart {
  readonly user: string;
  readonly workdir: string;
  readonly envVars: Readonly<Record<string, string>>;
}

/**
 * The defaults of a sandbox made from an image: what the image says wins, then E2B's account `user`, then root.
 * `/` as the working directory counts as unsaid, since build tools write it where nobody chose one.
 * @param accounts of the image, `user` included; empty when it has no /etc/passwd
 */
export function startOf(config: ImageConfig, accounts: readonly Account[]): ImageStart {
  const user = chosenUser(config, accounts);
  const home = accounts.find((account) => account.name === user || String(account.uid) === user)?.home;
  const workdir = config.workingDir === '' || config.workingDir === '/' ? home : config.workingDir;
  return { user, workdir: workdir?.startsWith('/') ? workdir : '/', envVars: config.env };
}

function chosenUser(config: ImageConfig, accounts: readonly Account[]): string {
  const named = config.user.split(':')[0] ?? '';
  // A uid needs no account; a name without one would make every call of a client fail.
  if (/^\d{1,10}$/.test(named)) return accounts.find(({ uid }) => uid === Number(named))?.name ?? named;
  if (accounts.some(({ name }) => name === named)) return named;
  return accounts.some(({ name }) => name === 'user') ? 'user' : 'root';
}
