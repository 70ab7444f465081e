import type { RequestListener } from 'node:http';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import type { CertificateSource } from '../certificates/source.ts';
import type { RouteDirectory } from '../proxy/contract.ts';
import type { FrontDoorConfig } from './config.ts';
import type { ListenAddress } from './listen.ts';

export interface FrontDoorOptions {
  readonly directory: RouteDirectory;
  /** the daemon's own routes */
  readonly control: RequestListener;
  /** what differs from `FRONT_DOOR_DEFAULTS` */
  readonly config?: Partial<FrontDoorConfig>;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
}

export interface FrontDoor {
  /** @throws AenvError `port_in_use`, `config_invalid` for an address that this host does not have */
  listen(address: ListenAddress): Promise<{ readonly url: string }>;
  /**
   * Serves the same over TLS, HTTP/2 included, until `close()`. May be called once; the certificate stays the caller's.
   * @throws AenvError `port_in_use`, `config_invalid`
   */
  listenTls(address: ListenAddress, certificate: CertificateSource): Promise<{ readonly url: string }>;
  /** Stops accepting, gives requests under way a short time, then breaks what is left. Idempotent. */
  close(): Promise<void>;
  /** open connections, for leak checks and metrics */
  stats(): FrontDoorStats;
}

export interface FrontDoorStats {
  readonly clients: number;
  readonly sandboxSockets: number;
  readonly sandboxRequests: number;
}
