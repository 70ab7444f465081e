import { randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { ApiKeyRecord, KeyLedger } from '../store/key-ledger.ts';
import { type Caller, type KeyStore, keyDigest, TEAM } from './key-store.ts';

export const KEY_PREFIX = 'e2b_';
/** More than people give names to; every key is held in memory. */
const MAX_KEYS = 1000;
const SHOWN_PREFIX = 2;
const SHOWN_SUFFIX = 4;
/** A use is written down at most this often for each key: a write waits for the disk. */
const USE_EVERY_MS = 300_000;

export interface ApiKeysOptions {
  readonly ledger: KeyLedger;
  /** knows the key that the node came up with, which is no row and cannot be revoked here */
  readonly bootstrap: KeyStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A fresh key. It is shown this once; only its digest is kept. */
export interface CreatedKey {
  readonly key: string;
  readonly record: ApiKeyRecord;
}

/** What the API asks of the keys. Unknown and revoked ids throw `api_key_not_found`. */
export interface KeyAdministration {
  list(): readonly ApiKeyRecord[];
  /** @throws AenvError `capacity_exhausted` when there are too many */
  create(name: string): CreatedKey;
  rename(keyId: string, name: string): ApiKeyRecord;
  revoke(keyId: string): void;
}

/** All keys of this node: the one it came up with, and those that were made since. A revoked key is out at once. */
export class ApiKeys implements KeyStore, KeyAdministration {
  readonly #options: ApiKeysOptions;
  readonly #byDigest = new Map<string, ApiKeyRecord>();

  constructor(options: ApiKeysOptions) {
    this.#options = options;
    for (const record of options.ledger.list()) this.#byDigest.set(record.digest, record);
  }

  async verify(key: string): Promise<Caller | undefined> {
    const bootstrap = await this.#options.bootstrap.verify(key);
    const digest = keyDigest(key);
    // What a look-up by digest tells by its time is about the digest, from which nobody gets nearer to a key.
    const record = this.#byDigest.get(digest.toString('hex'));
    if (record === undefined) return bootstrap;
    if (!timingSafeEqual(digest, Buffer.from(record.digest, 'hex'))) return bootstrap;
    this.#recordUse(record);
    return { keyId: record.keyId, team: TEAM };
  }

  list(): readonly ApiKeyRecord[] {
    return [...this.#byDigest.values()];
  }

  create(name: string): CreatedKey {
    if (this.#byDigest.size >= MAX_KEYS) {
      throw new AenvError('capacity_exhausted', `there are already ${MAX_KEYS} API keys`, {
        remediation: 'Revoke keys that are no longer needed with `aenv key revoke ID`.',
      });
    }
    const value = randomBytes(32).toString('hex');
    const key = `${KEY_PREFIX}${value}`;
    const record: ApiKeyRecord = {
      keyId: randomUUID(),
      name,
      digest: keyDigest(key).toString('hex'),
      maskPrefix: value.slice(0, SHOWN_PREFIX),
      maskSuffix: value.slice(-SHOWN_SUFFIX),
      valueLength: value.length,
      createdAt: new Date(this.#options.clock.now()),
    };
    this.#options.ledger.insert(record);
    this.#byDigest.set(record.digest, record);
    this.#options.log.info('API key created', { keyId: record.keyId, name });
    return { key, record };
  }

  rename(keyId: string, name: string): ApiKeyRecord {
    const record = { ...this.#find(keyId), name };
    this.#options.ledger.rename(keyId, name);
    this.#byDigest.set(record.digest, record);
    return record;
  }

  revoke(keyId: string): void {
    const { digest } = this.#find(keyId);
    this.#options.ledger.revoke(keyId, new Date(this.#options.clock.now()));
    this.#byDigest.delete(digest);
    this.#options.log.info('API key revoked', { keyId });
  }

  #find(keyId: string): ApiKeyRecord {
    for (const record of this.#byDigest.values()) if (record.keyId === keyId) return record;
    throw new AenvError('api_key_not_found', `API key '${keyId.slice(0, 64)}' not found`);
  }

  #recordUse(record: ApiKeyRecord): void {
    const now = this.#options.clock.now();
    if (now - (record.lastUsedAt?.getTime() ?? 0) < USE_EVERY_MS) return;
    const lastUsedAt = new Date(now);
    // First in memory: a disk that is full must neither lock anybody out nor be tried at each request.
    this.#byDigest.set(record.digest, { ...record, lastUsedAt });
    try {
      this.#options.ledger.recordUse(record.keyId, lastUsedAt);
    } catch (error) {
      this.#options.log.warn('the use of an API key could not be written', { keyId: record.keyId, error });
    }
  }
}
