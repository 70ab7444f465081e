import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { SandboxLedger } from '../../store/sandbox-ledger.ts';
import type { CheckpointRef } from '../../store/sandbox-record.ts';
import type { CaptureRequest, Checkpoints, Machine } from '../checkpoints/contract.ts';
import type { Ending } from '../ending.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../faults.ts';
import { newCheckpointId } from '../identity.ts';
import type { Phases } from '../launch/phases.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { LiveSandboxes } from '../live/live-sandboxes.ts';
import { howVmEnded } from '../live/vm-end.ts';
import type { SandboxMetrics } from '../metrics.ts';
import type { SandboxObserver } from '../observe/contract.ts';
import { admitPaused, type PausedLimits } from './quota.ts';

export interface PausingOptions {
  readonly ledger: SandboxLedger;
  readonly sandboxes: LiveSandboxes;
  readonly checkpoints: Checkpoints;
  readonly paused: PausedLimits;
  readonly faults?: LifecycleFaults;
  readonly ending: Ending;
  readonly observer: SandboxObserver;
  readonly metrics: SandboxMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** gives traffic back to a sandbox that runs on */
  readonly serve: (live: LiveSandbox, machine: Machine) => void;
}

/** What of the host a paused sandbox does not hold. */
const RELEASED = {
  ...{ slotIndex: null, netns: null, volumeId: null, vm: null, boot: null, incarnation: null },
} as const;

export interface PauseHow {
  /** false: only the disk is kept; default true */
  readonly memory?: boolean;
  /** the next start of the daemon lets it go on; its time to live stands still until then */
  readonly comesBack?: boolean;
}

/** How sandboxes go from running to paused, and back to paused when a resume fails. Called in the sandbox's turn. */
export class Pausing {
  readonly #options: PausingOptions;
  readonly #unwritten = new Set<LiveSandbox>();

  constructor(options: PausingOptions) {
    this.#options = options;
  }

  /**
   * Traffic goes first; then the machine is captured, and only when that is durable does the row say so. If it fails, the
   * sandbox runs on as if nothing had been. Whether its VM lives does not matter any more once all of it is captured; one
   * that dies before is lost.
   */
  async pause(live: LiveSandbox, { memory = true, comesBack = false }: PauseHow = {}): Promise<void> {
    const { sandboxes, observer, checkpoints, clock, log, metrics, faults = noLifecycleFaults } = this.#options;
    const machine = machineOf(live);
    const begin = clock.now();
    const id = newCheckpointId();
    const request = { ...captureOf(live, machine, id, 'pause', 'stay_paused'), memory };
    // Refused while it is still served.
    using _room = await checkpoints.admit(request);
    const bytes = (memory ? await machine.vm.privateBytes() : 0) + (await diskBytes(machine));
    if (stateOf(live) !== 'running') throw vmDied(live);
    // A shutdown asks nobody for more room than there was while all ran.
    if (!comesBack) admitPaused(sandboxes, this.#options.paused, bytes, live);
    const leftMs = Math.max(0, live.record.endAt.getTime() - begin);
    const checkpoint: CheckpointRef = { id, memory, bytes, ...(comesBack ? { leftMs } : {}) };
    this.#write(live, 'running', { state: 'pausing', checkpoint });
    live.apply({ type: 'pause' });
    sandboxes.withdraw(live);
    observer.ending(live.id);
    metrics.observeStates(sandboxes);
    let ms: Phases;
    try {
      await faults.hit('pause.row_pausing');
      const captured = await checkpoints.capture(request, true);
      ms = captured.ms;
      await faults.hit(memory ? 'pause.durable' : 'pause_disk.durable');
      const files = captured.files === undefined ? {} : { files: captured.files };
      const kept = { ...checkpoint, ...files, bytes: captured.bytes + (await diskBytes(machine)) };
      this.#write(live, 'pausing', { state: 'paused', pausedAt: new Date(clock.now()), checkpoint: kept });
    } catch (error) {
      await this.#goOn(live, machine, id);
      throw error;
    }
    live.apply({ type: 'paused' });
    await faults.hit(memory ? 'pause.row_paused' : 'pause_disk.row_paused');
    await this.#letGo(live);
    await faults.hit(memory ? 'pause.released' : 'pause_disk.released');
    metrics.observeStates(sandboxes);
    const { bytes: kept } = live.record.checkpoint ?? checkpoint;
    log.info('sandbox paused', { sandboxId: live.id, memory, bytes: kept, ms: { ...ms, total: clock.now() - begin } });
  }

  /** It was to come back, and stays paused instead, from now on. */
  stayDown(live: LiveSandbox): void {
    if (live.record.checkpoint === undefined) return;
    const { leftMs: _left, ...checkpoint } = live.record.checkpoint;
    this.#write(live, 'paused', { checkpoint, pausedAt: new Date(this.#options.clock.now()) });
  }

  /**
   * A resume failed: all that it took goes, and the sandbox is paused as before.
   * @returns false when it is to end instead, which is the caller's then
   */
  async stayPaused(live: LiveSandbox): Promise<boolean> {
    if (stateOf(live) !== 'resuming') return false;
    await this.#letGo(live);
    if (stateOf(live) !== 'resuming') return false;
    live.apply({ type: 'paused' });
    live.renewStart();
    this.#write(live, 'resuming', { state: 'paused' });
    this.#options.metrics.observeStates(this.#options.sandboxes);
    return true;
  }

  async #goOn(live: LiveSandbox, machine: Machine, checkpointId: string): Promise<void> {
    const { checkpoints, sandboxes, log, metrics, ending } = this.#options;
    await checkpoints.remove(checkpointId).catch((error: unknown) => {
      log.error('what a failed pause left could not be removed', { sandboxId: live.id, error });
    });
    let why: unknown;
    try {
      await checkpoints.goOn(machine, live.record.hostSecret);
    } catch (error) {
      why = error;
    }
    // Nobody else looks after its end until it runs again.
    if (machine.vm.state === 'exited') {
      await ending.lose(live, howVmEnded(await machine.vm.exited));
      return;
    }
    if (why !== undefined) {
      await ending.lose(live, `it could not be paused and does not go on: ${why}`);
      return;
    }
    live.apply({ type: 'kept_running' });
    this.#options.serve(live, machine);
    metrics.observeStates(sandboxes);
    if (!this.#writeRunning(live)) this.#unwritten.add(live);
  }

  /** Writes the rows of those that run on, where that could not be done before. */
  retryUnwritten(): void {
    for (const live of this.#unwritten) {
      if (stateOf(live) === 'running' && !this.#writeRunning(live)) return;
      this.#unwritten.delete(live);
    }
  }

  /** @returns whether it is written: what a pause failed of may be that the disk is full */
  #writeRunning(live: LiveSandbox): boolean {
    try {
      this.#write(live, 'pausing', { state: 'running', checkpoint: null });
      return true;
    } catch (error) {
      if (!this.#unwritten.has(live)) {
        this.#options.log.error('that a sandbox runs on could not be written yet', { sandboxId: live.id, error });
      }
      return false;
    }
  }

  /** Gives back what it holds of the host; what cannot be removed is found at the next start. */
  async #letGo(live: LiveSandbox): Promise<void> {
    live.machine = undefined;
    try {
      await live.resources.run();
    } catch (error) {
      this.#options.metrics.releaseFailed();
      this.#options.log.error('parts of a sandbox could not be removed', { sandboxId: live.id, error });
    }
    try {
      live.record = this.#options.ledger.update(live.id, ['paused', 'resuming'], RELEASED) ?? live.record;
    } catch (error) {
      // That it is paused is written, and that is what counts: the next start, of it or of the daemon, writes the rest.
      this.#options.log.warn('what a paused sandbox no longer holds is still in its row', {
        sandboxId: live.id,
        error,
      });
    }
  }

  #write(
    live: LiveSandbox,
    from: LiveSandbox['record']['state'],
    change: Parameters<SandboxLedger['update']>[2],
  ): void {
    const record = this.#options.ledger.update(live.id, from, change);
    if (record === undefined) throw new AenvError('internal', `the row of sandbox '${live.id}' is not as expected`);
    live.record = record;
  }
}

/** @throws AenvError `vm_died` */
export function machineOf(live: LiveSandbox): Machine {
  if (live.machine === undefined) throw vmDied(live);
  return live.machine;
}

/** As it is now: it changes while others are waited for. */
const stateOf = (live: LiveSandbox): string => live.lifecycle.state;

/** What the disk of the sandbox alone takes; 0 when that cannot be told, which keeps nobody from pausing. */
export function diskBytes({ volume }: Machine): Promise<number> {
  return volume.allocatedBytes().catch(() => 0);
}

export function captureOf(
  live: LiveSandbox,
  machine: Machine,
  id: string,
  kind: CaptureRequest['kind'],
  then: CaptureRequest['then'],
): CaptureRequest {
  const { templateId, cpuCount, memoryMb, diskSizeMb, hostSecret, envdVersion, bootId } = live.record;
  return {
    ...{ id, kind, machine, then, templateId, cpuCount, memoryMb, diskSizeMb },
    sandboxId: live.id,
    envd: { hostSecret, version: envdVersion, ...(bootId === undefined ? {} : { bootId }) },
  };
}

function vmDied(live: LiveSandbox): AenvError {
  return new AenvError('vm_died', `the microVM of sandbox '${live.id}' has ended`);
}
