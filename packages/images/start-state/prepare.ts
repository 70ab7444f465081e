import { createHash } from 'node:crypto';
import type { NodeKind } from '../ext4/model/node.ts';
import type { ImageConfig } from '../oci/image-config.ts';
import { parsePasswd } from './accounts.ts';
import { applyStartState, makeWorkingDir, START_STATE_VERSION } from './apply.ts';
import type { RootFiles } from './root-files.ts';
import { type ImageStart, startOf } from './start.ts';

/** Stands for the start state where the digest of a layer's archive would: what of the configuration it depends on. */
export function startStateId(config: ImageConfig): string {
  const inputs = { START_STATE_VERSION, workingDir: config.workingDir, user: config.user };
  return `sha256:${createHash('sha256')
    .update(`start state\n${JSON.stringify(inputs)}`)
    .digest('hex')}`;
}

/**
 * Gives a root file system the start state and the image's working directory.
 * @returns who and where commands are by default
 */
export async function prepareRoot<N extends { readonly kind: NodeKind }>(
  files: RootFiles<N>,
  config: ImageConfig,
): Promise<Pick<ImageStart, 'user' | 'workdir'>> {
  await applyStartState(files);
  if (config.workingDir !== '') await makeWorkingDir(files, config.workingDir);
  const passwd = await files.readText('/etc/passwd');
  const { user, workdir } = startOf(config, passwd === undefined ? [] : parsePasswd(passwd));
  return { user, workdir };
}
