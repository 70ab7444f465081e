import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { ConnectEnvd } from '../envd-client/envd-client.ts';
import { newSeed } from '../identity.ts';

/** Guests around their capture. */
export interface CapturedGuests {
  /**
   * Stops the programs of a guest, so that none of them runs on before whoever continues it has its time and entropy.
   * Never throws: one that does not answer is captured as it is.
   */
  freeze(address: string, hostSecret: string): Promise<void>;
  /** Tells a guest that goes on the time, and lets its programs go on. Never throws: after a minute they do by themselves. */
  release(address: string, hostSecret: string): Promise<void>;
  /** Has a guest write its files to its disk. @throws AenvError `capture_failed`; the signal's reason */
  sync(address: string, hostSecret: string, signal: AbortSignal): Promise<void>;
  /**
   * Goes through the steps that follow a capture, before one that many sandboxes are continued from: each of them finds
   * the code of envd compiled, which under emulation takes longer than to run it.
   * @throws the signal's reason; what a guest throws that cannot be continued
   */
  rehearse(address: string, hostSecret: string, signal: AbortSignal): Promise<void>;
}

/** How long a guest may take to go on. */
const RELEASE_MS = 20_000;
/** After so many calls the engine has compiled what it compiles early. */
const REHEARSALS = 4;

export function createCapturedGuests(connect: ConnectEnvd, log: Logger): CapturedGuests {
  const envdOf = (address: string) => connect({ address, port: ENVD_PORT });
  return {
    async freeze(address, hostSecret) {
      try {
        const frozen = await envdOf(address).freeze(hostSecret, new AbortController().signal);
        if (!frozen) log.info('a guest is captured with programs that have not stopped yet', { address });
      } catch (error) {
        log.warn('a guest is captured with its programs running', { address, error: String(error) });
      }
    },

    async release(address, hostSecret) {
      try {
        await envdOf(address).unfreeze(hostSecret, undefined, AbortSignal.timeout(RELEASE_MS));
      } catch (error) {
        log.warn('a guest that goes on could not be told the time', { address, error: String(error) });
      }
    },

    async sync(address, hostSecret, signal) {
      await envdOf(address).sync(hostSecret, signal);
    },

    async rehearse(address, hostSecret, signal) {
      const envd = envdOf(address);
      for (let round = 0; round < REHEARSALS; round++) {
        await envd.freeze(hostSecret, signal);
        const asCaptured = { capture: true, event: 'create', letGo: true } as const;
        await envd.init({ ...asCaptured, seed: newSeed(), hostSecret }, [hostSecret], signal);
        await envd.unfreeze(hostSecret, undefined, signal);
      }
    },
  };
}
