import { basename, dirname } from 'node:path';
import { AssetCache } from '../cache/asset-cache.ts';
import type { GuestFile } from '../contract.ts';
import { buildNative } from '../native/build.ts';

/** The native program for tests: the one that the suites have built of the same sources, or one built in this folder. */
export function nativeForTests(folder: string): Promise<GuestFile> {
  const path = process.env.AENV_NATIVE;
  // In the cache its folder is named for its digest.
  if (path !== undefined) return Promise.resolve({ path, digest: basename(dirname(path)) });
  return buildNative({ cache: new AssetCache(folder), toolchain: 'of this test' });
}
