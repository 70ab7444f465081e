import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isRecord, nftApply, nftJson } from './commands.ts';
import { instanceNames, isTag, ownerChain, tagOf } from './names.ts';

/**
 * What is known of an instance is kept in its nft table, as names of empty chains: it lives and dies with what it
 * describes, is changed in transactions, and cannot be left stale by a crash as a file can.
 */
export interface InstanceRecord {
  readonly tag: string;
  /** name of the chain that identifies the runtime folder */
  readonly owner: string | undefined;
  /** this instance, or one that passed it on, switched ip_forward on */
  readonly forwardingWasOff: boolean;
}

const FORWARDING_MARK = 'ip_forward_was_off';
const MAX_ATTEMPTS = 8;

/** All instances in this network namespace that have a table. */
export async function listInstances(): Promise<readonly InstanceRecord[]> {
  return recordsOfChains(await nftJson('list', 'chains'));
}

/** From the array that `nft -j list chains` prints. */
export function recordsOfChains(entries: readonly unknown[]): readonly InstanceRecord[] {
  const records = new Map<string, { tag: string; owner: string | undefined; forwardingWasOff: boolean }>();
  for (const entry of entries) {
    const chain = isRecord(entry) ? entry.chain : undefined;
    if (!isRecord(chain) || chain.family !== 'inet') continue;
    const table = String(chain.table);
    const tag = table.slice('aenv_'.length);
    if (!table.startsWith('aenv_') || !isTag(tag)) continue;
    const record = records.get(tag) ?? { tag, owner: undefined, forwardingWasOff: false };
    const name = String(chain.name);
    if (name.startsWith('home_')) record.owner = name;
    if (name === FORWARDING_MARK) record.forwardingWasOff = true;
    records.set(tag, record);
  }
  return [...records.values()];
}

/**
 * Takes a tag by making its table, which fails when the table exists: that is the check for collisions.
 * @param wanted a fixed tag instead of the one derived from the folder
 * @throws AenvError `network_exhausted` when every tag tried belongs to another folder
 */
export async function claimTag(runtimeDir: string, wanted?: string): Promise<string> {
  const attempts = wanted === undefined ? MAX_ATTEMPTS : 1;
  let last: unknown;
  for (let attempt = 0; attempt < attempts; attempt++) {
    const tag = wanted ?? tagOf(runtimeDir, attempt);
    const { table } = instanceNames(tag);
    try {
      await nftApply(`create table inet ${table}\nadd chain inet ${table} ${ownerChain(runtimeDir)}\n`);
      return tag;
    } catch (error) {
      if (!(await listInstances()).some((record) => record.tag === tag)) throw error;
      last = error;
    }
  }
  throw new AenvError('network_exhausted', 'the tags of this instance are in use by other instances', { cause: last });
}

/** Goes on with a tag that an earlier daemon of the folder took; its table is made again where it was flushed. */
export async function keepTag(runtimeDir: string, tag: string): Promise<void> {
  const { table } = instanceNames(tag);
  await nftApply(`add table inet ${table}\nadd chain inet ${table} ${ownerChain(runtimeDir)}\n`);
}

/**
 * The tags whose remains belong to this folder: those of its tables, and the first tag that it would take (or the one
 * that is fixed for it) unless another folder has that.
 */
export async function tagsOf(runtimeDir: string, fixed?: string): Promise<readonly string[]> {
  const records = await listInstances();
  const owner = ownerChain(runtimeDir);
  const tags = new Set(records.filter((record) => record.owner === owner).map((record) => record.tag));
  const usual = fixed ?? tagOf(runtimeDir);
  const isForeign = records.some((record) => record.tag === usual && (record.owner ?? owner) !== owner);
  if (!isForeign) tags.add(usual);
  return [...tags];
}

export async function markForwardingWasOff(tag: string): Promise<void> {
  await nftApply(`add chain inet ${instanceNames(tag).table} ${FORWARDING_MARK}\n`);
}
