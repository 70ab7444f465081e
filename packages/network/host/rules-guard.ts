import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Counter, Metrics } from '@aenv/platform/observability/metrics.ts';
import { isRecord, nftApply, nftJson } from './commands.ts';
import { markForwardingWasOff, recordsOfChains } from './instances.ts';
import { type InstanceNames, ownerChain } from './names.ts';
import { SENTINEL_CHAIN } from './ruleset.ts';

export interface RulesGuardOptions {
  readonly names: InstanceNames;
  /** the script that puts the rules in place */
  readonly rules: string;
  readonly runtimeDir: string;
  /** this instance switched ip_forward on */
  readonly forwardingWasOff: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const INTERVAL_MS = 5_000;

/**
 * Puts the instance's rules back when another program flushed the host's whole ruleset, as a restart of the nftables
 * service does: without them slots would reach the host's services.
 */
export class RulesGuard {
  readonly #options: RulesGuardOptions;
  readonly #stopping = new AbortController();
  readonly #restored: Counter;
  #loop: Promise<void> = Promise.resolve();
  /** what the table said when it was last seen; other instances may change it */
  #forwardingWasOff: boolean;

  constructor(options: RulesGuardOptions) {
    this.#options = options;
    this.#forwardingWasOff = options.forwardingWasOff;
    this.#restored = options.metrics.counter(
      'aenv_network_rules_restored_total',
      'Times that the rules of the host side had been flushed and were put back',
    );
  }

  start(): void {
    this.#loop = this.#run();
  }

  async inPlace(): Promise<boolean> {
    const chains = await nftJson('list', 'chains');
    const { table, tag } = this.#options.names;
    const inPlace = chains.some((entry) => {
      const chain = isRecord(entry) ? entry.chain : undefined;
      return isRecord(chain) && chain.family === 'inet' && chain.table === table && chain.name === SENTINEL_CHAIN;
    });
    if (inPlace) {
      this.#forwardingWasOff = recordsOfChains(chains).some((record) => record.tag === tag && record.forwardingWasOff);
    }
    return inPlace;
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { clock, log, names, rules, runtimeDir } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await clock.sleep(INTERVAL_MS, signal);
        if (await this.inPlace()) continue;
        if (signal.aborted) return;
        await nftApply(`${rules}add chain inet ${names.table} ${ownerChain(runtimeDir)}\n`);
        if (this.#forwardingWasOff) await markForwardingWasOff(names.tag);
        this.#restored.add();
        log.error('the firewall rules of this instance had been flushed by another program; they are back in place');
      } catch (error) {
        if (signal.aborted) return;
        log.error('cannot look after the firewall rules', { reason: AenvError.from(error).message });
      }
    }
  }
}
