import { randomBytes, randomInt, randomUUID } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** `length` random characters of `[a-z0-9]`. */
export function randomName(length: number): string {
  let name = '';
  for (let i = 0; i < length; i++) name += ALPHABET[randomInt(ALPHABET.length)];
  return name;
}

/** `i` and 20 of `[a-z0-9]`; no dash, because a dash splits the host label. */
export const newSandboxId = (): string => `i${randomName(20)}`;

/** Unique for each start of a VM; never used again. */
export const newIncarnation = (sandboxId: string): string => `${sandboxId}-${randomName(6)}`;

/** 32 random bytes in hex: tokens of clients and the host secret of envd. */
export const newSecret = (): string => randomBytes(32).toString('hex');

/** Names a captured machine; never used again. */
export const newCheckpointId = (): string => `c${randomName(20)}`;

/** Entropy for a guest's kernel: 32 random bytes in base64. */
export const newSeed = (): string => randomBytes(32).toString('base64');

/** machine-id(5) of a guest. */
export const newMachineId = (): string => randomUUID().replaceAll('-', '');
