import { randomBytes } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Context, Hono } from 'hono';
import { authenticate } from '../auth/authenticate.ts';
import { allowOrigin, isPreflight, preflightAnswer } from './http/cors.ts';
import type { ApiEnv, RequestContext } from './http/env.ts';
import { errorAnswer } from './http/error-answer.ts';
import { allowedMethods, honoPath, rawPath, requireDecodable } from './http/paths.ts';
import { readJson } from './http/read-json.ts';
import { requestMetrics } from './http/request-metrics.ts';
import type { Answer, Route } from './http/route.ts';
import { validate } from './http/validate.ts';
import type { ApiParts } from './parts.ts';
import { allRoutes } from './routes/all.ts';

/** The control plane as a function from request to answer. It never throws; faults become JSON answers. */
export interface Api {
  fetch(request: Request, context?: RequestContext): Promise<Response>;
}

export function createApi(parts: ApiParts): Api {
  const { log } = parts;
  const routes = allRoutes(parts);
  const app = new Hono<ApiEnv>({ getPath: rawPath });
  const observe = requestMetrics(parts.metrics);

  app.use(async (c, next) => {
    const begin = performance.now();
    c.set('requestId', randomBytes(8).toString('hex'));
    c.set('route', 'none');
    // Before everything else: a preflight carries no key.
    if (isPreflight(c.req.raw)) c.res = preflightAnswer(c.req.raw.headers);
    else await next();
    allowOrigin(c.req.raw.headers, c.var.route, c.res.headers);
    c.header('X-Request-Id', c.var.requestId);
    // Answers hold tokens.
    c.header('Cache-Control', 'no-store');
    const seconds = (performance.now() - begin) / 1000;
    const facts = { method: c.req.method, route: c.var.route, status: c.res.status };
    observe(facts, seconds);
    log.debug('request', { requestId: c.var.requestId, ...facts, ms: Math.round(seconds * 1000) });
  });

  for (const route of routes) {
    app.on(route.method, honoPath(route.path), async (c) => {
      c.set('route', route.path);
      return toResponse(await perform(route, c, parts));
    });
  }

  app.notFound((c) => {
    const path = rawPath(c.req.raw);
    const allow = allowedMethods(routes, path);
    const what = `${c.req.method} ${path.slice(0, 200)}`;
    if (allow.length === 0) {
      return errorAnswer(new AenvError('route_not_found', `no such route: ${what}`), c.var.requestId);
    }
    const error = new AenvError('method_not_allowed', `method not allowed: ${what}`);
    return errorAnswer(error, c.var.requestId, { Allow: allow.join(', ') });
  });

  app.onError((thrown, c) => {
    const error = AenvError.from(thrown);
    if (error.status >= 500 && error.code !== 'not_served') {
      log.error('request failed', { requestId: c.var.requestId, route: c.var.route, error });
    }
    return errorAnswer(error, c.var.requestId);
  });

  return { fetch: async (request, context = {}) => app.fetch(request, context) };
}

async function perform(route: Route, c: Context<ApiEnv>, parts: ApiParts): Promise<Answer> {
  const { raw } = c.req;
  requireDecodable(rawPath(raw));
  // The key comes first: nobody without one makes the node read a body.
  const caller = route.open ? undefined : await authenticate(raw.headers, parts.keys);
  const query = route.query === undefined ? undefined : validate(route.query, queryOf(raw.url), 'query');
  const body = await readBody(route, c, parts.settings.jsonBodyBytes);
  return route.handle({
    param: (name) => c.req.param(name) ?? '',
    query,
    body,
    caller,
    headers: raw.headers,
    peer: c.env.peer,
  });
}

async function readBody(route: Route, c: Context<ApiEnv>, limit: number): Promise<unknown> {
  if (route.body === undefined) return undefined;
  const sent = await readJson(c.env.body ?? c.req.raw.body, c.req.raw.headers, limit);
  if (sent !== undefined) return validate(route.body, sent, 'body');
  if (!route.bodyOptional) throw new AenvError('invalid_request', 'body: required, a JSON object');
  return validate(route.body, {}, 'body');
}

/** Parameters of the query by name; one that is repeated is joined by commas, which is how lists are written. */
function queryOf(url: string): Record<string, string> {
  const query: Record<string, string> = {};
  const start = url.indexOf('?');
  if (start < 0) return query;
  for (const [name, value] of new URLSearchParams(url.slice(start + 1))) {
    query[name] = query[name] === undefined ? value : `${query[name]},${value}`;
  }
  return query;
}

function toResponse(answer: Answer): Response {
  const { status, headers = {} } = answer;
  if (answer.text !== undefined) {
    return new Response(answer.text.content, { status, headers: { ...headers, 'Content-Type': answer.text.type } });
  }
  return answer.body === undefined
    ? new Response(null, { status, headers })
    : Response.json(answer.body, { status, headers });
}
