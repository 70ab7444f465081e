import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { z } from 'zod';
import type { ShutdownReport } from '../../sandboxes/shutdown/report.ts';

const schema = z.object({
  pid: z.int(),
  paused: z.array(z.string()),
  ended: z.array(z.string()),
  failures: z.array(z.object({ sandboxId: z.string(), reason: z.string() })),
  left: z.array(z.string()),
});

const fileOf = (runtime: string): string => join(runtime, 'shutdown.json');

/** Leaves what a daemon did at its end for whoever told it to end. */
export async function writeShutdownReport(runtime: string, report: ShutdownReport): Promise<void> {
  await writeDurable(fileOf(runtime), `${JSON.stringify({ pid: process.pid, ...report })}\n`, 0o600);
}

/** What the daemon with this pid did at its end, when it could say so. */
export async function readShutdownReport(runtime: string, pid: number): Promise<ShutdownReport | undefined> {
  try {
    const { pid: writer, ...report } = schema.parse(JSON.parse(await readFile(fileOf(runtime), 'utf8')));
    return writer === pid ? report : undefined;
  } catch {
    return undefined;
  }
}

export async function forgetShutdownReport(runtime: string): Promise<void> {
  await rm(fileOf(runtime), { force: true });
}
