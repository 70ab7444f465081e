import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { EndReason, SandboxState } from '../contract.ts';

/** Why somebody ends a sandbox on purpose. */
export type EndRequest = Extract<EndReason, 'killed' | 'expired' | 'shutdown'>;

/**
 *            ready                  end                    released
 * creating ----------> running ------------> killing ------------------> ended
 *   | |                  |                    ^   |
 *   | |   end            |                    |   |
 *   | +------------------|--------------------+   |
 *   |   failed           |                        |
 *   +--------------------|------------------------|--------------------> ended
 *   |                    | vm_died                |
 *   |                    +---------------------------------------------> lost
 *   |                    |                        |
 *   +--------------------+------------------------+--- daemon_crashed -> lost
 *
 * `vm_died` while killing changes nothing: the VM is meant to go. The final states keep their reason.
 */
export type Lifecycle =
  | { readonly state: 'creating' }
  | { readonly state: 'running' }
  | { readonly state: 'killing'; readonly reason: EndRequest }
  | { readonly state: 'ended'; readonly reason: EndRequest | 'create_failed'; readonly message?: string }
  | { readonly state: 'lost'; readonly reason: 'vm_died' | 'daemon_crashed'; readonly message: string };

export type LifecycleEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'end'; readonly reason: EndRequest }
  | { readonly type: 'released'; readonly message?: string }
  | { readonly type: 'vm_died'; readonly message: string }
  | { readonly type: 'daemon_crashed'; readonly message: string };

export const INITIAL: Lifecycle = { state: 'creating' };

/** Whether nothing can happen to the sandbox any more. */
export function isFinal(state: SandboxState): state is 'ended' | 'lost' {
  return state === 'ended' || state === 'lost';
}

/**
 * The state after an event.
 * @throws AenvError `internal` when the event is not possible in this state: a fault of the caller, never of a client
 */
export function transition(from: Lifecycle, event: LifecycleEvent): Lifecycle {
  if (event.type === 'daemon_crashed' && !isFinal(from.state)) {
    return { state: 'lost', reason: 'daemon_crashed', message: event.message };
  }
  switch (from.state) {
    case 'creating':
      if (event.type === 'ready') return { state: 'running' };
      if (event.type === 'failed') return { state: 'ended', reason: 'create_failed', message: event.message };
      if (event.type === 'end') return { state: 'killing', reason: event.reason };
      break;
    case 'running':
      if (event.type === 'end') return { state: 'killing', reason: event.reason };
      if (event.type === 'vm_died') return { state: 'lost', reason: 'vm_died', message: event.message };
      break;
    case 'killing':
      if (event.type === 'vm_died') return from;
      if (event.type === 'released') {
        return {
          state: 'ended',
          reason: from.reason,
          ...(event.message === undefined ? {} : { message: event.message }),
        };
      }
      break;
    case 'ended':
    case 'lost':
      break;
  }
  throw new AenvError('internal', `a sandbox that is ${from.state} cannot take the event ${event.type}`);
}
