import { createHash, timingSafeEqual } from 'node:crypto';

/** Whom a key speaks for. */
export interface Caller {
  readonly keyId: string;
  readonly team: string;
}

/** Looks keys up; asynchronous, so that keys may come from elsewhere. */
export interface KeyStore {
  /** The caller behind a key as a client sent it, or undefined. Takes the same time for every wrong key. */
  verify(key: string): Promise<Caller | undefined>;
}

/** What a key may consist of: it goes through headers, files and environment variables unquoted. */
export const KEY_SYNTAX = /^[A-Za-z0-9_-]{32,256}$/;

/** The team that everything on a node belongs to. */
export const TEAM = 'default';

/** Knows the one key that a node comes up with, and nothing of any other. It keeps a digest only. */
export class SingleKeyStore implements KeyStore {
  readonly #digest: Buffer;

  constructor(key: string) {
    this.#digest = keyDigest(key);
  }

  async verify(key: string): Promise<Caller | undefined> {
    // Digests have one length, as timingSafeEqual demands, and do not tell how much of a guess was right.
    return timingSafeEqual(keyDigest(key), this.#digest) ? { keyId: 'default', team: TEAM } : undefined;
  }
}

/** SHA-256: keys are long and random, so a slow hash would guard nothing. */
export function keyDigest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
