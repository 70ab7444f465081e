/** What comes with a request beside its web form. */
export interface RequestContext {
  /** address of the peer of the connection, if there is one */
  readonly peer?: string | undefined;
  /** the body as it comes from the connection; the web request's own body is used when this is absent */
  readonly body?: AsyncIterable<Uint8Array>;
}

/** Types that Hono carries through. */
export interface ApiEnv {
  Bindings: RequestContext;
  Variables: {
    requestId: string;
    /** the pattern of the route, for metrics and logs: never the path itself */
    route: string;
  };
}
