import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { hasLayerMagic } from '../lsmt/header.ts';
import { findPayload } from '../tar-wrapper/wrapper.ts';
import { hasZFileMagic } from '../zfile/header.ts';
import { openZFile } from '../zfile/source.ts';
import type { BlobSource } from './contract.ts';
import { openFile } from './file-source.ts';
import { readAll } from './read-all.ts';
import { sliceOf } from './slice-source.ts';

/** Bytes that are enough to tell what a blob is. */
const PEEK = 512;

/**
 * Takes a layer out of what it is wrapped in, each wrapper known by its first bytes: `[tar] > [ZFile] > LSMT`. The result
 * takes over the blob; after an error that is still the caller's.
 * @throws AenvError `layer_corrupt` if no layer is inside, `layer_unavailable`
 */
export async function openLayerBlob(blob: BlobSource, signal?: AbortSignal): Promise<BlobSource> {
  const payload = await findPayload(blob, signal);
  let inner = payload === undefined ? blob : sliceOf(blob, payload.offset, payload.size);
  let begin = await readAll(inner, 0, Math.min(PEEK, inner.size), signal);
  if (hasZFileMagic(begin)) {
    inner = await openZFile(inner, signal);
    begin = await readAll(inner, 0, Math.min(PEEK, inner.size), signal);
  }
  if (!hasLayerMagic(begin)) throw new AenvError('layer_corrupt', 'this is no overlaybd layer');
  return inner;
}

/** The same for a file of this host, which is closed after an error. */
export async function openLayerFile(path: string, signal?: AbortSignal): Promise<BlobSource> {
  const file = await openFile(path);
  try {
    return await openLayerBlob(file, signal);
  } catch (error) {
    await file.close();
    throw error;
  }
}
