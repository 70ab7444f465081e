import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateEnvdContract } from '../../packages/envd/contract/generate.ts';

const COMMITTED = 'packages/contracts/envd/gen';

/** Generates the code of envd's protos into a scratch folder and names the committed files that differ, or undefined. */
export async function staleCode(): Promise<string | undefined> {
  const scratch = await mkdtemp(join(tmpdir(), 'aenv-gen-'));
  try {
    generateEnvdContract(scratch);
    const names = new Set([...(await readdir(scratch)), ...(await readdir(COMMITTED))]);
    const stale: string[] = [];
    for (const name of names) {
      const read = (folder: string) => readFile(join(folder, name), 'utf8').catch(() => undefined);
      if ((await read(scratch)) !== (await read(COMMITTED))) stale.push(name);
    }
    return stale.length === 0 ? undefined : `not what the protos give, generate again: ${stale.join(', ')}`;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
