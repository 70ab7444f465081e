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

/** The store of a node that has one key. It keeps a digest only. */
export class SingleKeyStore implements KeyStore {
  readonly #digest: Buffer;

  constructor(key: string) {
    this.#digest = digest(key);
  }

  async verify(key: string): Promise<Caller | undefined> {
    // Digests have one length, as timingSafeEqual demands, and do not tell how much of a guess was right.
    return timingSafeEqual(digest(key), this.#digest) ? { keyId: 'default', team: 'default' } : undefined;
  }
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
