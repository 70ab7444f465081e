import type { IncomingMessage, ServerResponse } from 'node:http';

// Browsers may talk to envd directly: it has no cookies, the token in a header is all the access there is.
const EXPOSED = [
  'Connect-Content-Encoding',
  'Content-Disposition',
  'Content-Encoding',
  'Content-Range',
  'Grpc-Status',
  'Grpc-Message',
  'Grpc-Status-Details-Bin',
  'Location',
  'Cache-Control',
  'X-Content-Type-Options',
].join(', ');

/** Adds the headers that let scripts of any origin read the answer. Answers a preflight itself and returns true then. */
export function applyCors(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.headers.origin === undefined) return false;
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-expose-headers', EXPOSED);
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false;
  response.setHeader('access-control-allow-methods', 'HEAD, GET, POST, PUT, PATCH, DELETE');
  // A star would not cover Authorization, so the wish is granted by name.
  const wanted = request.headers['access-control-request-headers'];
  response.setHeader('access-control-allow-headers', wanted ?? '*');
  response.setHeader('access-control-max-age', '7200');
  response.setHeader('vary', 'Access-Control-Request-Headers');
  response.writeHead(204);
  response.end();
  return true;
}
