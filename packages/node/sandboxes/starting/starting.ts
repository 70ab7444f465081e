import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { MicroVm } from '@aenv/vmm/contract/micro-vm.ts';
import type { SandboxLedger } from '../../store/sandbox-ledger.ts';
import { toView } from '../../store/sandbox-record.ts';
import type { Machine } from '../checkpoints/contract.ts';
import type { SandboxView } from '../contract.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../faults.ts';
import { newMachineId, newSeed } from '../identity.ts';
import type { Launch, Launched, LaunchRequest } from '../launch/launch.ts';
import { Stopwatch } from '../launch/phases.ts';
import { Gate } from '../limits/gate.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { LiveSandboxes } from '../live/live-sandboxes.ts';
import { howVmEnded, type VmEnd } from '../live/vm-end.ts';
import type { SandboxMetrics } from '../metrics.ts';
import type { SandboxObserver } from '../observe/contract.ts';

export interface StartingOptions {
  readonly ledger: SandboxLedger;
  readonly sandboxes: LiveSandboxes;
  readonly launch: Launch;
  readonly limits: { readonly maxConcurrentStarts: number; readonly maxQueuedStarts: number };
  readonly faults?: LifecycleFaults;
  readonly observer: SandboxObserver;
  readonly metrics: SandboxMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onVmExit: (live: LiveSandbox, vm: MicroVm, end: VmEnd) => void;
}

/** How a sandbox is started. */
export type StartRequest = Pick<LaunchRequest, 'from' | 'init' | 'service'> & {
  /** its state before */
  readonly was: 'creating' | 'resuming';
  /** id of the sandbox that it is a fork of */
  readonly parent?: string;
  /** whether only a shutdown has paused it */
  readonly comesBack?: boolean;
  /** when it ends; absent: as long after its start as was asked for */
  readonly endAt?: Date;
};

const POINTS = {
  creating: { answered: 'create.guest_answered', running: 'create.row_running' },
  resuming: { answered: 'resume.guest_answered', running: 'resume.row_running' },
  comeback: { answered: 'comeback.guest_answered', running: 'comeback.row_running' },
  child: { answered: 'fork.child_answered', running: 'fork.child_running' },
} as const;

/** How sandboxes come to run: a place among those that start, the launch, and then the row and the traffic. */
export class Starting {
  readonly #options: StartingOptions;
  readonly #gate: Gate;

  constructor(options: StartingOptions) {
    const { maxConcurrentStarts, maxQueuedStarts } = options.limits;
    this.#options = options;
    this.#gate = new Gate({ concurrency: maxConcurrentStarts, maxQueue: maxQueuedStarts });
  }

  /** What it has taken when it throws is in `live.resources`. */
  async start(live: LiveSandbox, request: StartRequest): Promise<SandboxView> {
    using _start = this.#options.observer.starting();
    const stopwatch = new Stopwatch();
    const waiting = Promise.withResolvers<void>();
    const queue = stopwatch.time('queue', () => waiting.promise);
    const launched = await this.#gate.run(async () => {
      waiting.resolve();
      await queue;
      return await this.#launch(live, stopwatch, request);
    }, live.startSignal);
    const { faults = noLifecycleFaults } = this.#options;
    const points = pointsOf(request);
    await faults.hit(points.answered);
    // The end may have been asked for while the last answer of the guest was on its way.
    live.startSignal.throwIfAborted();
    // One that was paused stays so.
    if (launched.vm.state === 'exited') throw new AenvError('vm_died', howVmEnded(await launched.vm.exited));
    const view = this.#publish(live, launched, stopwatch, request);
    await faults.hit(points.running);
    return view;
  }

  /** The machine is this sandbox's from now on: it is served, and its end is heard. */
  attach(live: LiveSandbox, machine: Machine): void {
    const { onVmExit } = this.#options;
    const { vm } = machine;
    live.machine = machine;
    this.serve(live, machine);
    vm.exited.then(
      (end) => onVmExit(live, vm, end),
      (error: unknown) => onVmExit(live, vm, { code: null, signal: null, lastLines: String(error) }),
    );
  }

  /** Traffic and observation begin, or go on after a pause that failed. */
  serve(live: LiveSandbox, { vm, address }: Machine): void {
    const { record } = live;
    live.target = {
      ...{ sandboxId: live.id, address, hostSecret: record.hostSecret },
      incarnation: live.nextServing(vm.record.incarnation),
      ...(record.trafficAccessToken === undefined ? {} : { trafficAccessToken: record.trafficAccessToken }),
      ...(record.network.maskRequestHost === undefined ? {} : { maskRequestHost: record.network.maskRequestHost }),
      httpsPorts: record.network.httpsPorts,
    };
    this.#options.observer.running({
      ...{ sandboxId: live.id, address, hostSecret: record.hostSecret, consoleLog: vm.record.serialLog },
    });
  }

  #launch(live: LiveSandbox, stopwatch: Stopwatch, request: StartRequest): Promise<Launched> {
    const { from, init, service, was } = request;
    const { record } = live;
    // Who goes on after a pause is who he was.
    const machineId = was === 'resuming' ? {} : { machineId: newMachineId() };
    const { cpuCount, memoryMb, diskSizeMb, hostSecret } = record;
    return this.#options.launch({
      ...{ from, stopwatch, cpuCount, memoryMb, diskSizeMb, hostSecret },
      sandboxId: live.id,
      internet: record.allowInternetAccess !== false,
      init: { ...init, ...machineId, seed: newSeed() },
      ...(service === undefined ? {} : { service }),
      resources: live.resources,
      signal: live.startSignal,
      onVmStarted: ({ slot, volume, drives, vm, boot }) => {
        const attached = drives.map(({ drive }) => drive);
        const places = { slotIndex: slot.index, netns: slot.netns, volumeId: volume.id, drives: attached };
        const change = { ...places, vm: vm.record, boot, incarnation: vm.record.incarnation };
        live.record = this.#options.ledger.update(live.id, ['creating', 'resuming'], change) ?? live.record;
      },
    });
  }

  #publish(live: LiveSandbox, launched: Launched, stopwatch: Stopwatch, request: StartRequest): SandboxView {
    const { was, endAt, parent } = request;
    const { ledger, sandboxes, metrics, clock, log } = this.#options;
    const { vm, slot, volume, drives, answer, hooks, boot } = launched;
    const now = clock.now();
    if (answer.bootId === undefined) throw new AenvError('boot_failed', 'envd did not tell the boot id of its kernel');
    // The time to live counts from here: the client gets all of what it asked for.
    const ttl = live.record.endAt.getTime() - live.record.createdAt.getTime();
    const record = ledger.update(live.id, was, {
      state: 'running',
      ...(was === 'creating' ? { startedAt: new Date(now) } : {}),
      endAt: endAt ?? new Date(now + ttl),
      envdVersion: answer.envdVersion,
      bootId: answer.bootId,
      incarnation: vm.record.incarnation,
      vm: vm.record,
      checkpoint: null,
      pausedAt: null,
    });
    if (record === undefined) throw new AenvError('internal', `the row of sandbox '${live.id}' is not as expected`);
    // From here on nothing may throw: what fails now would no longer be undone.
    live.record = record;
    live.apply({ type: 'ready' });
    this.attach(live, { vm, volume, drives, address: slot.hostAddress, boot });
    if (hooks.length > 0) this.#options.observer.hooksRan(live.id, hooks);
    const ms = stopwatch.read();
    metrics.created(ms);
    metrics.observeStates(sandboxes);
    const from = parent === undefined ? {} : { parent };
    log.info('sandbox running', { sandboxId: live.id, bootId: answer.bootId, was, ...from, ms });
    return toView(record);
  }
}

function pointsOf({ was, parent, comesBack }: StartRequest) {
  if (parent !== undefined) return POINTS.child;
  return comesBack === true ? POINTS.comeback : POINTS[was];
}
