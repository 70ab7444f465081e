/**
 * What the proxy must know of a sandbox. An incarnation is one run of one VM, as long as it is served without a break:
 * connections, agents and sockets belong to it and die with it, because the next sandbox in the same slot has the same
 * address. One that has ended never comes back; a VM that is served again after a pause that failed is another one.
 */
export interface RouteTarget {
  readonly sandboxId: string;
  readonly incarnation: string;
  /** address that the host dials */
  readonly address: string;
  /** opens the loopback tunnel of envd; never sent for anything else */
  readonly hostSecret: string;
  /** set when the sandbox is private: needed on every port but envd's */
  readonly trafficAccessToken?: string;
  /** replaces the Host header; `${PORT}` stands for the port */
  readonly maskRequestHost?: string;
  /** ports whose servers speak TLS */
  readonly httpsPorts: readonly number[];
}

export type RouteLookup =
  | { readonly kind: 'running'; readonly target: RouteTarget }
  | { readonly kind: 'unknown' }
  /**
   * known, but it cannot serve: `state` names why; `wake` is there when traffic is to bring it back, which needs the token
   * where the sandbox is private. What came of it, the next look tells
   */
  | {
      readonly kind: 'unavailable';
      readonly state: string;
      readonly wake?: () => Promise<void>;
      readonly trafficAccessToken?: string;
    };

/** The proxy's view of the sandboxes; the lifecycle implements it. */
export interface RouteDirectory {
  lookup(sandboxId: string): RouteLookup;
  /** Calls back when an incarnation stops serving; returns the way to unsubscribe. */
  onEnd(listener: (incarnation: string) => void): () => void;
}
