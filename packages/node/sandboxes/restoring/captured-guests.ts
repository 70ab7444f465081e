import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { ConnectEnvd } from '../envd-client/envd-client.ts';
import type { GuestLine } from '../envd-client/request.ts';
import { newSeed } from '../identity.ts';

/** Guests around their capture. */
export interface CapturedGuests {
  /**
   * Makes a guest that runs ready to be frozen and unfrozen by this line: it has the connection, and has gone the way of
   * such a call a moment ago, so that neither is done while its programs stand still. Never throws: one that does not answer
   * is asked again when it is to stop.
   */
  prepare(address: string, hostSecret: string, line: GuestLine, signal: AbortSignal): Promise<void>;
  /**
   * Stops the programs of a guest, so that none of them runs on before whoever continues it has its time and entropy.
   * Never throws: one that does not answer is captured as it is.
   */
  freeze(address: string, hostSecret: string, line?: GuestLine): Promise<void>;
  /** Tells a guest that goes on the time, and lets its programs go on. Never throws: after a minute they do by themselves. */
  unfreeze(address: string, hostSecret: string, line?: GuestLine): Promise<void>;
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
const UNFREEZE_MS = 20_000;
/** One that has not answered by then will hardly be frozen in time. */
const PREPARE_MS = 3_000;
/** After so many calls the engine has compiled what it compiles early. */
const REHEARSALS = 4;

export function createCapturedGuests(connect: ConnectEnvd, log: Logger): CapturedGuests {
  const envdOf = (address: string, line?: GuestLine) =>
    connect({ address, port: ENVD_PORT, ...(line === undefined ? {} : { line }) });
  return {
    async prepare(address, hostSecret, line, signal) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(PREPARE_MS)]);
      await envdOf(address, line)
        .unfreeze(hostSecret, { stay: true }, limit)
        .catch(() => {});
    },

    async freeze(address, hostSecret, line) {
      try {
        const frozen = await envdOf(address, line).freeze(hostSecret, new AbortController().signal);
        if (!frozen) log.info('a guest is captured with programs that have not stopped yet', { address });
      } catch (error) {
        log.warn('a guest is captured with its programs running', { address, error: String(error) });
      }
    },

    async unfreeze(address, hostSecret, line) {
      try {
        await envdOf(address, line).unfreeze(hostSecret, {}, AbortSignal.timeout(UNFREEZE_MS));
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
        await envd.unfreeze(hostSecret, {}, signal);
      }
    },
  };
}
