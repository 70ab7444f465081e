import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { Export } from '../export.ts';
import { NbdServer } from '../server.ts';
import { BufferPool } from '../transmission/buffer-pool.ts';
import { MemoryVolume } from './memory-volume.ts';

/** A served disk in memory, gone when the test ends. */
export async function serveMemory(
  t: TestContext,
  options: { readonly size?: number; readonly readOnly?: boolean; readonly inFlightBytes?: number } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-nbd-'));
  const volume = new MemoryVolume(options.size ?? 1024 * 1024, options.readOnly);
  const exported = new Export('disk', volume, options.inFlightBytes);
  const path = join(folder, 'nbd.sock');
  const server = await NbdServer.listen({
    path,
    mode: 0o600,
    export: exported,
    pool: new BufferPool(),
    log: silentLogger,
  });
  t.after(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { path, volume, exported, server };
}
