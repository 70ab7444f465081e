import { posix } from 'node:path';

const STAGING_NAME = /^\.aenv-upload-[0-9a-f]{18}-(new|old)$/;

/** Whether something of this name appears where nothing was, or takes the place of something. */
export type StagingKind = 'new' | 'old';

/**
 * A name beside the target for what is not complete yet, which takes the target's name at the end. Such names are shown
 * in no listing; whoever watches the folder is told of the target instead, and learns from the name what has happened.
 */
export function stagingPath(target: string, kind: StagingKind): string {
  // Loaded when it is first needed: listings need the names only.
  const random = process.getBuiltinModule('node:crypto').randomBytes(9);
  return posix.join(posix.dirname(target), `.aenv-upload-${random.toString('hex')}-${kind}`);
}

export function stagingKind(name: string): StagingKind | undefined {
  const kind = STAGING_NAME.exec(name)?.[1];
  return kind === 'new' || kind === 'old' ? kind : undefined;
}

export function isStaging(name: string): boolean {
  return stagingKind(name) !== undefined;
}
