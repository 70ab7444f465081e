/** Limits of the data plane. Times in `ms`. */
export interface ProxyConfig {
  /** time for one TCP connect, TLS handshake or tunnel answer */
  readonly connectTimeoutMs: number;
  /** waits between tries while nothing listens; a server that was just started may lag behind its own message */
  readonly retryDelaysMs: readonly number[];
  /** requests and upgraded connections of one sandbox at a time; above it 429 */
  readonly maxConnectionsPerSandbox: number;
  /** unused connections kept for one sandbox */
  readonly maxIdlePerSandbox: number;
  /** how long an unused connection is kept, unless the server announced less */
  readonly idleMs: number;
  /** how long the other half of an upgraded connection may go on after one side has ended: WebSocket */
  readonly webSocketHalfOpenMs: number;
  /** the same for other protocols, where a half-closed stream can be meant */
  readonly upgradeHalfOpenMs: number;
  /** how long a client's bytes may wait for a server that does not take them */
  readonly stalledMs: number;
  /** how long the rest of a request is read and dropped after its answer */
  readonly drainMs: number;
  /** bytes of header lines accepted from a server in a sandbox */
  readonly maxHeaderBytes: number;
}

export const PROXY_DEFAULTS: ProxyConfig = {
  connectTimeoutMs: 5_000,
  retryDelaysMs: [100, 200, 250, 300],
  maxConnectionsPerSandbox: 512,
  maxIdlePerSandbox: 32,
  idleMs: 4_000,
  webSocketHalfOpenMs: 5_000,
  upgradeHalfOpenMs: 600_000,
  stalledMs: 900_000,
  drainMs: 2_000,
  maxHeaderBytes: 64 * 1024,
};
