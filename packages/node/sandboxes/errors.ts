import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { EndReason, SandboxState } from './contract.ts';

const SHOWN_ID_LENGTH = 64;
const REASONS: Record<EndReason, string> = {
  killed: 'it was deleted',
  expired: 'its time to live was over',
  shutdown: 'the daemon was shut down',
  create_failed: 'it could not be started',
  vm_died: 'its microVM died',
  daemon_crashed: 'the daemon crashed',
};

/** What the ledger remembers of a sandbox that is over. */
export interface Obituary {
  readonly state: SandboxState;
  readonly endReason?: EndReason;
  readonly endedAt?: Date;
}

/** For an id that is unknown, or with what became of a sandbox that is over. */
export function sandboxNotFound(sandboxId: string, obituary?: Obituary): AenvError {
  const id = sandboxId.slice(0, SHOWN_ID_LENGTH);
  if (obituary?.endReason === undefined || obituary.endedAt === undefined) {
    return new AenvError('sandbox_not_found', `sandbox '${id}' not found`, { details: { sandboxId: id } });
  }
  const endedAt = obituary.endedAt.toISOString();
  return new AenvError(
    'sandbox_not_found',
    `sandbox '${id}' not found: it is ${obituary.state} since ${endedAt}, because ${REASONS[obituary.endReason]}`,
    { details: { sandboxId: id, state: obituary.state, reason: obituary.endReason, endedAt } },
  );
}

/** For a sandbox in a state in which the operation makes no sense. */
export function sandboxNotRunning(sandboxId: string, state: SandboxState): AenvError {
  return new AenvError('sandbox_not_running', `sandbox '${sandboxId}' is ${state}`, { details: { sandboxId, state } });
}

/** For an operation that only a sandbox which is not paused allows. */
export function sandboxPaused(sandboxId: string): AenvError {
  return new AenvError('sandbox_paused', `sandbox '${sandboxId}' is paused`, {
    details: { sandboxId, state: 'paused' },
  });
}

/** For a resume of a sandbox that is not paused. */
export function sandboxNotPaused(sandboxId: string, state: SandboxState): AenvError {
  return new AenvError('sandbox_not_paused', `sandbox '${sandboxId}' is ${state}, not paused`, {
    details: { sandboxId, state },
  });
}
