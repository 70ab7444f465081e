import { createHash } from 'node:crypto';
import { ROOT_LABEL } from '@aenv/contracts/guest/layout.ts';
import type { TreeIdentity } from './model/tree.ts';

/** What a root file system is made with: the same text and size give the same bytes. */
export function rootIdentity(text: string, sizeBytes: number): TreeIdentity {
  return { sizeBytes, uuid: uuidBytes(text), hashSeed: uuidBytes(`hash seed\n${text}`), label: ROOT_LABEL };
}

/** A UUID (version 8, RFC 9562) that is the same for the same text. */
export function uuidOf(text: string): string {
  return uuidBytes(text)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function uuidBytes(text: string): Buffer {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes;
}
