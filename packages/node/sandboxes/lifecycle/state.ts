import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { EndReason, SandboxState } from '../contract.ts';

/** Why somebody ends a sandbox on purpose. */
export type EndRequest = Extract<EndReason, 'killed' | 'expired' | 'shutdown'>;

/**
 *            ready                  end                    released
 * creating ----------> running ------------> killing ------------------> ended
 *   | |                | ^ ^                   ^  ^                        ^
 *   | |   end          | | +--- ready ---+     |  |                        |
 *   | +----------------|-|---------------|-----+  | end                    |
 *   |            pause | | kept_running  |        |                        |
 *   |                  v |   paused      |        |                        |
 *   |                pausing -------> paused      |                        |
 *   |                  |              | ^   |     |                        |
 *   |                  |       resume | |   +-----+                        |
 *   |                  |              v | paused                           |
 *   |                  |           resuming ------ end ----> killing       |
 *   |   failed         |                                                   |
 *   +------------------|---------------------------------------------------+
 *                      | vm_died (running, pausing); daemon_crashed (all that is not paused)
 *                      +------------------------------------------------------------------> lost
 *
 * `vm_died` while killing changes nothing: the VM is meant to go. The final states keep their reason. A sandbox that is
 * being paused is not ended before that is over: its parts are in use.
 */
export type Lifecycle =
  | { readonly state: 'creating' }
  | { readonly state: 'running' }
  | { readonly state: 'pausing' }
  | { readonly state: 'paused' }
  | { readonly state: 'resuming' }
  | { readonly state: 'killing'; readonly reason: EndRequest }
  | { readonly state: 'ended'; readonly reason: EndRequest | 'create_failed'; readonly message?: string }
  | { readonly state: 'lost'; readonly reason: 'vm_died' | 'daemon_crashed'; readonly message: string };

export type LifecycleEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'pause' }
  /** A capture failed, or was one in passing. */
  | { readonly type: 'kept_running' }
  /** All of it is on the disk and nothing runs; also when a resume failed. */
  | { readonly type: 'paused' }
  | { readonly type: 'resume' }
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
  if (event.type === 'daemon_crashed' && from.state !== 'paused' && !isFinal(from.state)) {
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
      if (event.type === 'pause') return { state: 'pausing' };
      if (event.type === 'vm_died') return { state: 'lost', reason: 'vm_died', message: event.message };
      break;
    case 'pausing':
      if (event.type === 'paused') return { state: 'paused' };
      if (event.type === 'kept_running') return { state: 'running' };
      if (event.type === 'vm_died') return { state: 'lost', reason: 'vm_died', message: event.message };
      break;
    case 'paused':
      if (event.type === 'resume') return { state: 'resuming' };
      if (event.type === 'end') return { state: 'killing', reason: event.reason };
      break;
    case 'resuming':
      if (event.type === 'ready') return { state: 'running' };
      if (event.type === 'paused') return { state: 'paused' };
      if (event.type === 'end') return { state: 'killing', reason: event.reason };
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
