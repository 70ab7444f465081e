import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Counter, Metrics } from '@aenv/platform/observability/metrics.ts';
import { isAlive, killAndWait } from '@aenv/platform/process/identity.ts';
import { type Operation, type OperationRequest, type OperationResult, PROTOCOL } from '../blockd/control/messages.ts';
import { blockdFolders } from '../blockd/layout.ts';
import type { BlockdArguments } from '../blockd/process/arguments.ts';
import { findBlockd } from '../blockd/process/state.ts';
import type { BlockdConnection } from './connection.ts';
import { findRunning, launchBlockd, type RunningBlockd } from './launch.ts';

export interface SupervisorOptions {
  readonly daemon: BlockdArguments;
  readonly logFile: string;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** A daemon that has not answered for so long is taken for hung and replaced; default 20,000 `ms`, as VMs wait for 30 s. */
  readonly hungMs?: number;
  /** How long a request waits for a daemon that is being started again; default 30,000 `ms`. */
  readonly patienceMs?: number;
}

const HUNG_MS = 20_000;
const PATIENCE_MS = 30_000;
const PING_MS = 5_000;
/** How long one that was told to end may take. */
const END_MS = 10_000;
const MOST_DELAY_MS = 2_000;

/** Operations that may be asked for again when the daemon has ended meanwhile: twice is the same as once. */
const REPEATABLE: ReadonlySet<Operation> = new Set<Operation>([
  ...(['hello', 'attach', 'detach', 'remove', 'list', 'prepareSnapshot', 'removeSnapshot', 'listSnapshots'] as const),
  ...(['flush', 'compact', 'stat', 'counters'] as const),
]);

/**
 * Keeps a block daemon running: takes over the one that an earlier node has left, starts one where there is none or
 * another version, and a new one when it dies. VMs wait for their disks meanwhile.
 */
export class BlockdSupervisor {
  readonly #options: SupervisorOptions;
  readonly #end = new AbortController();
  readonly #restarts: Counter;
  #running: Promise<RunningBlockd>;
  #watching: Promise<void>;

  private constructor(options: SupervisorOptions, running: RunningBlockd) {
    this.#options = options;
    this.#restarts = options.metrics.counter(
      'aenv_block_daemon_restarts_total',
      'Times that the block daemon was started again after it had died',
    );
    this.#restarts.add(0);
    this.#running = Promise.resolve(running);
    this.#watching = this.#watch(running);
  }

  /** @throws AenvError `block_daemon_failed` when none can be started; the signal's reason */
  static async open(options: SupervisorOptions, signal?: AbortSignal): Promise<BlockdSupervisor> {
    return new BlockdSupervisor(options, await adoptOrLaunch(options, signal));
  }

  /** Asks the daemon, after its restart if it is just being restarted. @throws AenvError as the operation does */
  async call<O extends Operation>(operation: O, args: OperationRequest<O>): Promise<OperationResult<O>> {
    for (;;) {
      const { connection } = await this.#connected();
      try {
        return await connection.call(operation, args);
      } catch (error) {
        const died = error instanceof AenvError && error.code === 'block_daemon_failed';
        if (!died || !REPEATABLE.has(operation) || this.#end.signal.aborted) throw error;
        // The watch sees the end of the connection too; then there is a new one to wait for.
        await delay(5);
      }
    }
  }

  async #connected(): Promise<RunningBlockd> {
    const limit = new AbortController();
    try {
      const patience = delay(this.#options.patienceMs ?? PATIENCE_MS, undefined, { signal: limit.signal });
      const running = await Promise.race([this.#running, patience]);
      if (running !== undefined) return running;
    } finally {
      limit.abort();
    }
    throw new AenvError('block_daemon_failed', 'the block daemon has ended, and cannot be started again so far');
  }

  /** Pid of the daemon, which may be another one a moment later. */
  async pid(): Promise<number> {
    return (await this.#running).state.process.pid;
  }

  /** Lets go of the daemon. It ends too unless it serves disks: then it goes on, and so do their VMs. */
  async close(): Promise<void> {
    if (this.#end.signal.aborted) return;
    // One that is just being restarted is not waited for.
    const running = await Promise.race([this.#running.catch(() => undefined), delay(1_000, undefined)]);
    const attached = (await running?.connection.call('counters', {}).catch(() => undefined))?.attached ?? 0;
    this.#end.abort(new AenvError('shutting_down', 'the node ends'));
    if (running !== undefined && attached === 0) await end(running);
    running?.connection.close();
    await this.#watching;
  }

  async #watch(running: RunningBlockd): Promise<void> {
    await this.#untilGone(running);
    if (this.#end.signal.aborted) return;
    const next = this.#restart(running);
    next.catch(() => {});
    this.#running = next;
    let started: RunningBlockd;
    try {
      started = await next;
    } catch {
      return;
    }
    this.#watching = this.#watch(started);
    await this.#watching;
  }

  /** Waits for the end of the connection, and ends a daemon that does not answer any more. */
  async #untilGone({ connection, state }: RunningBlockd): Promise<void> {
    const { hungMs = HUNG_MS } = this.#options;
    const gone = connection.closed.then(() => true);
    while (!this.#end.signal.aborted) {
      if (await Promise.race([gone, delay(Math.min(PING_MS, hungMs), false, { ref: false })])) return;
      const ping = connection.call('hello', {}).then(
        () => 'answered',
        () => 'gone',
      );
      if ((await Promise.race([ping, delay(hungMs, 'hung', { ref: false })])) !== 'hung') continue;
      this.#options.log.error('the block daemon does not answer and is ended', { pid: state.process.pid });
      connection.close();
    }
    await gone;
  }

  /** Starts anew until it succeeds or nobody needs it any more. */
  async #restart(before: RunningBlockd): Promise<RunningBlockd> {
    const { log } = this.#options;
    const begin = performance.now();
    log.error('the block daemon has ended, and is started again', { pid: before.state.process.pid });
    for (let pause = 50; ; pause = Math.min(pause * 2, MOST_DELAY_MS)) {
      try {
        // It may be alive and have closed the connection only; two of them would fight.
        if (await isAlive(before.state.process)) await killAndWait(before.state.process);
        const running = await launchBlockd(this.#options.daemon, this.#options.logFile, this.#end.signal);
        this.#restarts.add();
        const ms = Math.round(performance.now() - begin);
        log.info('the block daemon is back', { pid: running.state.process.pid, ms });
        return running;
      } catch (error) {
        if (this.#end.signal.aborted) throw error;
        log.error('the block daemon cannot be started', { error });
      }
      await systemClock.sleep(pause, this.#end.signal);
    }
  }
}

/** The daemon of an earlier node if it is of this version, else a new one in its place. */
async function adoptOrLaunch(options: SupervisorOptions, signal?: AbortSignal): Promise<RunningBlockd> {
  const { daemon, log } = options;
  const found = await findRunning(daemon.runtime);
  if (found !== undefined) {
    const { protocol, version, process } = found.state;
    if (protocol === PROTOCOL && version === daemon.version) {
      log.info('block daemon of an earlier node is taken over', { pid: process.pid });
      return found;
    }
    log.info('block daemon of another version is replaced', { pid: process.pid, version });
    await end(found);
    found.connection.close();
  } else {
    // One that runs and cannot be reached is of no use, and would keep the next one from its files.
    const stuck = await findBlockd(blockdFolders(daemon.root, daemon.runtime).state);
    if (stuck !== undefined) await killAndWait(stuck.process);
  }
  return await launchBlockd(daemon, options.logFile, signal);
}

/** Ends a daemon in order, and by force when it does not. */
async function end({ connection, state }: RunningBlockd): Promise<void> {
  await Promise.race([endInOrder(connection), delay(END_MS, undefined, { ref: false })]);
  const deadline = Date.now() + END_MS;
  while (await isAlive(state.process)) {
    if (Date.now() > deadline) {
      await killAndWait(state.process);
      return;
    }
    await delay(10);
  }
}

async function endInOrder(connection: BlockdConnection): Promise<void> {
  await connection.call('shutdown', {}).catch(() => {});
  await connection.closed;
}
