import { createServer, type IncomingMessage, type Server } from 'node:http';
import { requestFraming } from '../proxy/headers/framing.ts';
import { decideRoute, type RoutedRequest } from '../proxy/routing/route.ts';
import type { FrontDoorConfig } from './config.ts';

/** An HTTP server with the settings that the data plane needs; its events are the caller's. */
export function createHttpServer(config: FrontDoorConfig): Server {
  const server = createServer({
    // Uploads into sandboxes take as long as they take; bodies of the control plane are guarded one by one.
    requestTimeout: 0,
    headersTimeout: config.headersTimeoutMs,
    connectionsCheckingInterval: Math.min(5_000, config.headersTimeoutMs),
    keepAliveTimeout: config.keepAliveTimeoutMs,
    maxHeaderSize: config.maxClientHeaderBytes,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    // The router refuses a missing Host itself, as JSON.
    requireHostHeader: false,
    shouldUpgradeCallback: (request) => isUpgrade(request) && decideRoute(routed(request)).kind === 'sandbox',
  });
  server.timeout = 0;
  server.maxConnections = config.maxConnections;
  // A limit by number drops fields silently; they are bounded by their size.
  server.maxHeadersCount = 0;
  return server;
}

/**
 * Whether a request really is for another protocol. `h2c` is an offer that may be left unanswered (RFC 9113 §3.1 has
 * withdrawn it), and so is every upgrade of a request with a body or over HTTP/1.0.
 */
function isUpgrade(request: IncomingMessage): boolean {
  const protocol = request.headers.upgrade?.trim().toLowerCase();
  return (
    protocol !== undefined &&
    protocol !== 'h2c' &&
    request.httpVersion === '1.1' &&
    requestFraming(request.headers) === 'none'
  );
}

/** What the router looks at. */
export function routed(request: IncomingMessage): RoutedRequest {
  const { httpVersion } = request;
  return { url: request.url ?? '/', httpVersion, headers: request.headers, rawHeaders: request.rawHeaders };
}
