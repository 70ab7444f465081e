import { PROXY_DEFAULTS, type ProxyConfig } from '../proxy/config.ts';

/** Limits of the HTTP server, and of the data plane behind it. Times in `ms`. */
export interface FrontDoorConfig extends ProxyConfig {
  /** time for the header lines of a request */
  readonly headersTimeoutMs: number;
  /** time for the body of a control-plane request; longer only while it comes at `controlBodyBytesPerSecond` or more */
  readonly controlBodyTimeoutMs: number;
  readonly controlBodyBytesPerSecond: number;
  /** how long an idle client connection is kept; longer than clients and load balancers keep theirs */
  readonly keepAliveTimeoutMs: number;
  /** bytes of header lines accepted from clients */
  readonly maxClientHeaderBytes: number;
  /** open client connections */
  readonly maxConnections: number;
  /** how long `close()` lets requests finish before it breaks them */
  readonly closeGraceMs: number;
}

export const FRONT_DOOR_DEFAULTS: FrontDoorConfig = {
  ...PROXY_DEFAULTS,
  headersTimeoutMs: 30_000,
  controlBodyTimeoutMs: 30_000,
  controlBodyBytesPerSecond: 1024,
  keepAliveTimeoutMs: 75_000,
  maxClientHeaderBytes: 64 * 1024,
  maxConnections: 16_384,
  closeGraceMs: 3_000,
};
