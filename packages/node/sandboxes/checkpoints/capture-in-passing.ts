import type { Ending } from '../ending.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { SandboxObserver } from '../observe/contract.ts';
import type { Captured, CaptureRequest, Checkpoints } from './contract.ts';

export interface CapturingParts {
  readonly checkpoints: Pick<Checkpoints, 'admit' | 'capture' | 'goOn'>;
  readonly ending: Pick<Ending, 'lose'>;
  readonly observer: Pick<SandboxObserver, 'starting'>;
}

/**
 * Captures a running sandbox that goes on: it stands still for the moment in which its state is read. When that fails, it
 * goes on as well, or is lost if it cannot. In the sandbox's turn.
 * @param request that lets it go on
 * @throws AenvError why it could not be captured
 */
export async function captureInPassing(
  { checkpoints, ending, observer }: CapturingParts,
  source: LiveSandbox,
  request: CaptureRequest,
): Promise<Captured> {
  // Refused before anything is asked of its guest.
  using _room = await checkpoints.admit(request);
  // A look takes a guest as long as it stands still, and would come between.
  using _first = observer.starting();
  try {
    return await checkpoints.capture(request, true);
  } catch (error) {
    if (source.lifecycle.state === 'running') {
      await checkpoints.goOn(request.machine, source.record.hostSecret).catch(async (reason: unknown) => {
        // The end of its VM may have been heard of first.
        if (source.lifecycle.state !== 'running') return;
        await ending.lose(source, `it could not be captured and does not go on: ${reason}`);
      });
    }
    throw error;
  }
}
