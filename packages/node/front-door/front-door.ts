import type { FrontDoor, FrontDoorOptions } from './contract.ts';
import { HttpFrontDoor } from './http-front-door.ts';

export type { FrontDoor, FrontDoorOptions, FrontDoorStats } from './contract.ts';

/**
 * The one HTTP server of the daemon. Every request is routed on its own, in this order:
 *
 * | The request has                                         | It goes to                                             |
 * | ------------------------------------------------------- | ------------------------------------------------------ |
 * | host label `PORT-SANDBOXID.anything` (any case)         | that port, path kept                                   |
 * | `e2b-sandbox-id` + `e2b-sandbox-port`, or               | that port, path kept, `/health` and `/metrics` too;    |
 * | `x-agentenv-sandbox-id` + `x-agentenv-target-port`      | a leading `/proxy` is stripped                         |
 * | path `/proxy` or `/proxy/…` and no routing headers      | 400 `bad_route`                                        |
 * | anything else                                           | the daemon's own routes                                |
 *
 * A host without a dot, an IP literal, and a first label that does not begin with a number and a dash name no sandbox.
 * `PORT-ID-CLIENT.domain` is read as `PORT-ID.domain`. The host label stands above the headers.
 *
 * What the platform itself answers on the data plane, as JSON `{code, message, error_code, remediation, …}` (a page for
 * a browser that navigates), with `Access-Control-Allow-Origin: *`:
 *
 * | Status | error_code             | When                                                                          |
 * | ------ | ---------------------- | ----------------------------------------------------------------------------- |
 * | 400    | `bad_route`            | malformed label, half a header pair, bad port or id, no or two Host hdrs      |
 * | 400    | `invalid_request`      | a request that is not HTTP, or a transfer coding other than chunked           |
 * | 403    | `forbidden`            | private sandbox, `e2b-traffic-access-token` wrong or missing (not envd's port)|
 * | 404    | `route_not_found`      | host-only path of envd, or an unusual spelling of a path on envd's port       |
 * | 405    | `method_not_allowed`   | CONNECT                                                                       |
 * | 408    | `request_timeout`      | header lines (or a control-plane body) that do not arrive in time             |
 * | 429    | `too_many_connections` | the sandbox has its maximum of requests and upgraded connections under way    |
 * | 431    | `headers_too_large`    | header lines above the limit                                                  |
 * | 502    | `sandbox_gone`         | unknown or ended sandbox, one in another state (named), one that ended meanwhile |
 * | 502    | `port_not_open`        | nothing listens on the port, on any address of the guest, for about a second  |
 * | 502    | `upstream_failed`      | the server broke the connection before an answer, or answered no valid HTTP   |
 * | 504    | `upstream_timeout`     | no connection within the connect timeout                                      |
 *
 * Everything else comes from the server in the sandbox and is passed on as it is, redirects included. An answer that
 * ends short, and every stream of a sandbox that ends, is broken off with a TCP reset, never ended cleanly: over HTTP/2
 * with RST_STREAM (INTERNAL_ERROR), over TLS without close_notify.
 *
 * `listenTls` serves the same over TLS 1.2 and newer, HTTP/2 for clients that ask for it. WebSockets use HTTP/1.1.
 */
export function createFrontDoor(options: FrontDoorOptions): FrontDoor {
  return new HttpFrontDoor(options);
}
