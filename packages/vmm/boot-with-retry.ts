import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { MicroVm, VmDriver, VmSpec } from './contract/micro-vm.ts';

export interface BootPolicy {
  /** starts in all, at least 1 */
  readonly attempts: number;
  /** how long a guest may go without a sign of life until it is ready, from the start of its VM, in `ms` */
  readonly hangMs: number;
  readonly log: Logger;
}

export interface Booted {
  readonly vm: MicroVm;
  /** which start it was that succeeded, from 1 */
  readonly attempts: number;
}

/**
 * Waits for the guest of a VM. `alive` is to be called when the guest has come a step further, and only then: the limit
 * starts anew, so that on a busy host a boot that goes on is not taken for one that hangs.
 */
export type WaitUntilReady = (vm: MicroVm, signal: AbortSignal, alive: () => void) => Promise<void>;

/**
 * Boots a VM and waits until its guest is ready. One that dies or is not ready in time is stopped and started again
 * under a new incarnation, a bounded number of times; nothing of the failed ones is left.
 * @param makeSpec gives each attempt (from 1) a spec with an incarnation of its own
 * @param ready resolves when the guest is ready and gives up when its signal is aborted; what it throws by itself is an
 *   answer of the guest and not repeated
 * @throws AenvError `boot_failed` with the last lines of every attempt; the reason of `signal`
 */
export async function bootWithRetry(
  driver: VmDriver,
  makeSpec: (attempt: number) => VmSpec | Promise<VmSpec>,
  ready: WaitUntilReady,
  policy: BootPolicy,
  signal?: AbortSignal,
): Promise<Booted> {
  const failures: string[] = [];
  for (let attempt = 1; attempt <= policy.attempts; attempt++) {
    signal?.throwIfAborted();
    const vm = await driver.start(await makeSpec(attempt), signal);
    const failure = await waitUntilReady(vm, ready, policy.hangMs, signal);
    if (failure === undefined) return { vm, attempts: attempt };
    policy.log.warn('a microVM did not come up', { incarnation: vm.record.incarnation, attempt, reason: failure });
    failures.push(`attempt ${attempt}: ${failure}`);
  }
  throw new AenvError('boot_failed', `the microVM did not come up: ${failures.join('; ')}`);
}

/** @returns why the VM, which has been stopped then, did not come up; undefined when it did */
async function waitUntilReady(
  vm: MicroVm,
  ready: WaitUntilReady,
  hangMs: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const giveUp = new AbortController();
  const cancel = () => giveUp.abort(signal?.reason);
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted) cancel();
  const hung = Promise.withResolvers<'hung'>();
  const timer = setTimeout(() => hung.resolve('hung'), hangMs);
  const cancelled = Promise.withResolvers<'cancelled'>();
  giveUp.signal.addEventListener('abort', () => cancelled.resolve('cancelled'), { once: true });
  try {
    const polling = ready(vm, giveUp.signal, () => timer.refresh());
    polling.catch(() => {});
    const how = await Promise.race([
      polling.then(
        () => 'ready' as const,
        (error) => {
          // Its connection may break just before the end of the VM is known.
          if (vm.state === 'exited') return 'died' as const;
          throw error;
        },
      ),
      vm.exited.then(() => 'died' as const),
      hung.promise,
      cancelled.promise,
    ]);
    if (how === 'ready') return undefined;
    await vm.stop();
    signal?.throwIfAborted();
    const { lastLines } = await vm.exited;
    const what = how === 'died' ? 'it ended' : `no sign of life for ${hangMs} ms`;
    return lastLines === '' ? `${what}, its console is empty` : `${what}, last lines:\n${lastLines}`;
  } catch (error) {
    await vm.stop();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
    giveUp.abort();
  }
}
