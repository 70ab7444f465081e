import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { optional, time } from './columns.ts';
import type { Database, RawRow } from './database.ts';

/** An API key as it is remembered: enough to recognise it, nothing to use it with. */
export interface ApiKeyRecord {
  readonly keyId: string;
  readonly name: string;
  /** SHA-256 of the key, in hex */
  readonly digest: string;
  /** first and last characters of what follows `e2b_`, for people to tell keys apart */
  readonly maskPrefix: string;
  readonly maskSuffix: string;
  /** characters after `e2b_` */
  readonly valueLength: number;
  readonly createdAt: Date;
  /** some minutes behind */
  readonly lastUsedAt?: Date;
}

const Row = z.object({
  key_id: z.string(),
  name: z.string(),
  digest: z.string(),
  mask_prefix: z.string(),
  mask_suffix: z.string(),
  value_length: z.int(),
  created_at: time,
  last_used_at: time.nullable(),
});

/** The rows of all API keys. One that was revoked stays, without its digest being valid any more. */
export class KeyLedger {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  insert(key: ApiKeyRecord): void {
    this.#database.run(
      `INSERT INTO api_keys (key_id, name, digest, mask_prefix, mask_suffix, value_length, created_at)
       VALUES (:keyId, :name, :digest, :maskPrefix, :maskSuffix, :valueLength, :createdAt)`,
      {
        keyId: key.keyId,
        name: key.name,
        digest: key.digest,
        maskPrefix: key.maskPrefix,
        maskSuffix: key.maskSuffix,
        valueLength: key.valueLength,
        createdAt: key.createdAt.getTime(),
      },
    );
  }

  /** The keys that are valid, oldest first. */
  list(): readonly ApiKeyRecord[] {
    return this.#database
      .all('SELECT * FROM api_keys WHERE revoked_at IS NULL ORDER BY created_at, key_id')
      .map(toRecord);
  }

  /** @returns whether there is such a valid key */
  rename(keyId: string, name: string): boolean {
    const sql = 'UPDATE api_keys SET name = :name WHERE key_id = :keyId AND revoked_at IS NULL';
    return this.#database.run(sql, { keyId, name }) > 0;
  }

  /** @returns whether there was such a valid key */
  revoke(keyId: string, at: Date): boolean {
    const sql = 'UPDATE api_keys SET revoked_at = :at WHERE key_id = :keyId AND revoked_at IS NULL';
    return this.#database.run(sql, { keyId, at: at.getTime() }) > 0;
  }

  recordUse(keyId: string, at: Date): void {
    this.#database.run('UPDATE api_keys SET last_used_at = :at WHERE key_id = :keyId', { keyId, at: at.getTime() });
  }
}

function toRecord(raw: RawRow): ApiKeyRecord {
  const parsed = Row.safeParse(raw);
  if (!parsed.success) {
    throw new AenvError('ledger_failed', `the ledger's row of API key ${String(raw.key_id)} is damaged`, {
      cause: parsed.error,
    });
  }
  const row = parsed.data;
  return {
    keyId: row.key_id,
    name: row.name,
    digest: row.digest,
    maskPrefix: row.mask_prefix,
    maskSuffix: row.mask_suffix,
    valueLength: row.value_length,
    createdAt: row.created_at,
    ...optional('lastUsedAt', row.last_used_at),
  };
}
