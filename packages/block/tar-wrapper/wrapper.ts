import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from '../blob/contract.ts';
import { readAll } from '../blob/read-all.ts';
import { encodeTarHeader, parseTarHeader, TAR_BLOCK } from './header.ts';

/** Bytes before the payload of a wrapper that is written here. */
export const WRAPPER_SIZE = 3 * TAR_BLOCK;

/** Where the file in a wrapper is. */
export interface Payload {
  readonly offset: number;
  readonly size: number;
}

/**
 * Finds the one file of a tar that a registry sees as an ordinary layer: after a pax header (its `size` rules), or after
 * an ordinary header.
 * @returns undefined if the blob does not begin with a tar header
 * @throws AenvError `layer_corrupt` if it does, and the rest does not fit
 */
export async function findPayload(blob: BlobSource, signal?: AbortSignal): Promise<Payload | undefined> {
  if (blob.size < TAR_BLOCK) return undefined;
  const first = parseTarHeader(await readAll(blob, 0, TAR_BLOCK, signal));
  if (first === undefined) return undefined;
  if (first.typeFlag !== 'x') return checked(blob, TAR_BLOCK, first);
  if (first.size > TAR_BLOCK || blob.size < WRAPPER_SIZE) throw corrupt('its pax header has the wrong size');
  const rest = await readAll(blob, TAR_BLOCK, 2 * TAR_BLOCK, signal);
  const header = parseTarHeader(rest.subarray(TAR_BLOCK));
  if (header === undefined) throw corrupt('no header follows its pax header');
  const size = paxSize(rest.subarray(0, first.size)) ?? header.size;
  return checked(blob, WRAPPER_SIZE, { ...header, size });
}

/** The 1536 bytes before a payload of this size. */
export function wrapperHeader(size: number): Buffer {
  const record = paxRecord(`size=${size}`);
  return Buffer.concat([
    encodeTarHeader('overlaybd.pax', 'x', record.length),
    Buffer.concat([record], TAR_BLOCK),
    encodeTarHeader('overlaybd.commit', '0', 0),
  ]);
}

/** The zeros after a payload of this size: up to a whole block, then the two blocks that end a tar. */
export function wrapperTrailer(size: number): Buffer {
  return Buffer.alloc(((TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK) + 2 * TAR_BLOCK);
}

function checked(blob: BlobSource, offset: number, header: { size: number; typeFlag: string }): Payload {
  if (header.typeFlag !== '0' && header.typeFlag !== '\0') throw corrupt('its entry is no file');
  if (offset + header.size > blob.size) throw corrupt('its file is longer than the tar');
  return { offset, size: header.size };
}

/** A record counts its own length, digits of the length included. */
function paxRecord(text: string): Buffer {
  let length = text.length + 2;
  while (`${length} ${text}\n`.length !== length) length++;
  return Buffer.from(`${length} ${text}\n`, 'latin1');
}

function paxSize(records: Buffer): number | undefined {
  const match = /(?:^|\n)\d{1,3} size=(\d{1,15})\n/.exec(records.toString('latin1'));
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

function corrupt(problem: string): AenvError {
  return new AenvError('layer_corrupt', `the tar around a layer cannot be read: ${problem}`);
}
