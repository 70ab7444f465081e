import type { Config } from '../../config/schema.ts';
import { foldersOf } from '../../daemon/folders.ts';
import { statStorage } from '../../storage/stat.ts';
import { verifyStorage } from '../../storage/verify/verify-storage.ts';
import { formatBytes, type Output } from '../terminal/output.ts';
import { gc } from './gc.ts';
import { tellProgress } from './tell-progress.ts';

export interface StorageCommand {
  readonly action: 'stat' | 'verify' | 'gc';
  readonly json: boolean;
  /** of `gc`: also what was used lately */
  readonly all: boolean;
  /** of `gc`: only look */
  readonly dryRun: boolean;
}

/** `aenv storage`. @returns the exit code */
export async function storage(
  { action, json, all, dryRun }: StorageCommand,
  config: Config,
  env: NodeJS.ProcessEnv,
  output: Output,
): Promise<number> {
  const folders = foldersOf(config);
  const print = (result: unknown, table: () => void) => (json ? output.out(JSON.stringify(result, null, 2)) : table());
  if (action === 'stat') {
    const stat = await statStorage(config.assets, folders);
    print(stat, () => {
      for (const { what, path, count, bytes, unneeded, unneededBytes = 0 } of stat.rows) {
        const idle =
          unneeded === undefined || unneeded === 0
            ? ''
            : `, of these unneeded ${unneeded}, ${formatBytes(unneededBytes)}`;
        output.out(
          `${what.padEnd(24)}${String(count).padStart(6)}  ${formatBytes(bytes).padStart(10)}${idle}  ${path}`,
        );
      }
      output.out(`free: ${formatBytes(stat.freeBytes)} of ${formatBytes(stat.totalBytes)}`);
      for (const path of stat.unreadable) output.err(`aenv: ${path} cannot be read, so nothing is removed`);
    });
    return 0;
  }
  if (action === 'verify') {
    const { checkedBytes, problems } = await verifyStorage(config.assets, folders, tellProgress(output));
    print({ ok: problems.length === 0, checkedBytes, problems }, () => {
      for (const { artefact, path, message } of problems) output.out(`${artefact}  ${path}\n    ${message}`);
      output.out(`${formatBytes(checkedBytes)} read, ${problems.length} damaged`);
    });
    return problems.length === 0 ? 0 : 1;
  }
  const collected = await gc({ config, env, all, dryRun });
  print(collected, () => {
    for (const { kind, path, bytes } of collected.removed)
      output.out(`${kind.padEnd(8)}${formatBytes(bytes).padStart(10)}  ${path}`);
    const freed = collected.freedBytes + (collected.snapshots?.freedBytes ?? 0);
    output.out(
      `${collected.removed.length} ${dryRun ? 'would be removed' : 'removed'}, ${formatBytes(freed)} ${dryRun ? 'would be free' : 'freed'}`,
    );
  });
  return 0;
}
