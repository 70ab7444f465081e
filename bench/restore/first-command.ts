import type { TestDaemon } from '../../tests/harness/daemon.ts';
import { runCommand } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';

/** A create and the first command of what it made, as a client sees them. */
export interface FirstCommand {
  /** request to create to the first byte that the command prints, `ms`; both calls one after the other */
  readonly totalMs: number;
  readonly createMs: number;
  readonly execMs: number;
  /** of the create, by the daemon's log */
  readonly phases: Readonly<Record<string, number>>;
}

/** The sandbox is gone when it resolves. */
export async function firstCommand(daemon: TestDaemon): Promise<FirstCommand> {
  await using sandbox = await createSandbox(daemon);
  const { firstByteMs: execMs } = await runCommand(daemon, sandbox, '/bin/sh', ['-c', 'echo ok']);
  const { createMs } = sandbox;
  return { totalMs: createMs + execMs, createMs, execMs, phases: await sandbox.phases() };
}
