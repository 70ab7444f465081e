import type { IncomingMessage, ServerResponse } from 'node:http';
import { ARCHIVE_PATH } from '@aenv/contracts/envd/archive.ts';
import { type GuestReport, OBSERVE_PATH, SYNC_PATH } from '@aenv/contracts/envd/host-api.ts';
import { FREEZE_PATH, HOOKS_PATH, UNFREEZE_PATH } from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { InitHandler } from '../guest-state/init.ts';
import { RestoreHandler } from '../guest-state/restore.ts';
import type { RpcServer } from '../rpc/server.ts';
import type { MetricsSource } from '../system/metrics.ts';
import { requireToken } from './access.ts';
import { sendEmpty, sendError, sendJson } from './answer.ts';
import type { EnvdContext } from './context.ts';
import { applyCors } from './cors.ts';
import { discardRest } from './discard.ts';
import { describeError } from './log.ts';

export interface RouterParts {
  readonly context: EnvdContext;
  readonly init: InitHandler;
  readonly metrics: MetricsSource;
  /** apart from the clients' one, because each remembers when it was last asked */
  readonly hostMetrics: MetricsSource;
  /** loads the RPC part when it is first needed: the answers before must not wait for it */
  readonly rpc: () => Promise<RpcServer>;
}

type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void;

interface Route {
  readonly methods: Readonly<Record<string, Handler>>;
  /** checks access by itself */
  readonly open?: boolean;
}

const RPC_PATH = /^\/(process\.Process|filesystem\.Filesystem)\/[A-Za-z]+$/;

/** The one request listener of envd. Nothing that a request does gets past it as an exception. */
export function createRouter(parts: RouterParts): (request: IncomingMessage, response: ServerResponse) => void {
  const routes = createRoutes(parts);
  const { context } = parts;
  return (request, response) => {
    // A client that goes away in the middle of an answer is no fault of anyone.
    response.on('error', () => {});
    request.on('error', () => {});
    response.once('finish', () => discardRest(request));
    dispatch(routes, parts, request, response).catch((error: unknown) => {
      const ours = AenvError.from(error);
      // What fails because the client has left is the client's business.
      if (ours.code === 'internal' && !response.destroyed)
        context.log('error', 'request failed', { error: describeError(error) });
      sendError(response, ours);
    });
  };
}

async function dispatch(
  routes: ReadonlyMap<string, Route>,
  parts: RouterParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (applyCors(request, response)) return;
  const url = parseUrl(request.url);
  const route = routes.get(url.pathname);
  if (route?.open !== true) requireToken(request, parts.context.state.current.accessToken);
  if (route !== undefined) {
    const handler = route.methods[request.method ?? ''];
    if (handler === undefined) throw notAllowed(response, Object.keys(route.methods), request.method);
    return handler(request, response, url);
  }
  if (RPC_PATH.test(url.pathname)) {
    if (request.method !== 'POST') throw notAllowed(response, ['POST'], request.method);
    const serve = await parts.rpc();
    if (await serve(url.pathname, request, response)) return;
  }
  throw new AenvError('route_not_found', `no route ${request.method} ${url.pathname}`);
}

function createRoutes({ context, init, metrics, hostMetrics }: RouterParts): ReadonlyMap<string, Route> {
  const files = () => import('../files/routes.ts');
  const archive = () => import('../archive/routes.ts');
  const download: Handler = async (request, response, url) => (await files()).download(context, request, response, url);
  const pack: Handler = async (request, response, url) => (await archive()).pack(context, request, response, url);
  const observe: Handler = async (request, response, url) => {
    init.requireHost(request);
    const load = await hostMetrics.read();
    const report = { ...context.processes.journal.since(url.searchParams.get('after') ?? ''), metrics: load };
    sendJson(response, 200, report satisfies GuestReport);
  };
  const restore = new RestoreHandler(context);
  const forHost = (handler: Handler): Route => ({
    open: true,
    methods: {
      POST: (request, response, url) => {
        init.requireHost(request);
        return handler(request, response, url);
      },
    },
  });
  const sync: Handler = async (_request, response) => {
    await context.options.system.sync();
    sendEmpty(response);
  };
  return new Map<string, Route>([
    ['/health', { open: true, methods: { GET: alive, HEAD: alive } }],
    ['/init', { open: true, methods: { POST: (request, response) => init.handle(request, response) } }],
    [FREEZE_PATH, forHost((request, response) => restore.freeze(request, response))],
    [UNFREEZE_PATH, forHost((request, response) => restore.unfreeze(request, response))],
    [HOOKS_PATH, forHost((request, response) => restore.hooks(request, response))],
    [OBSERVE_PATH, { open: true, methods: { GET: observe } }],
    [SYNC_PATH, forHost(sync)],
    ['/metrics', { methods: { GET: async (_, response) => sendJson(response, 200, await metrics.read()) } }],
    ['/envs', { methods: { GET: (_, response) => sendJson(response, 200, environmentOf(context)) } }],
    [
      '/files',
      {
        open: true,
        methods: {
          GET: download,
          HEAD: download,
          POST: async (request, response, url) => (await files()).upload(context, request, response, url),
        },
      },
    ],
    [
      '/files/compose',
      {
        methods: {
          POST: async (request, response) => (await import('../files/compose.ts')).compose(context, request, response),
        },
      },
    ],
    [
      ARCHIVE_PATH,
      {
        open: true,
        methods: {
          GET: pack,
          POST: async (request, response, url) => (await archive()).unpack(context, request, response, url),
        },
      },
    ],
  ]);
}

function alive(_request: IncomingMessage, response: ServerResponse): void {
  sendEmpty(response, { 'cache-control': 'no-store' });
}

function environmentOf({ state }: EnvdContext): Record<string, string> {
  return { ...state.current.envVars, ...state.platformEnvironment() };
}

function parseUrl(target: string | undefined): URL {
  try {
    return new URL(target ?? '/', 'http://envd');
  } catch {
    throw new AenvError('invalid_request', 'the request target is not a valid URL');
  }
}

function notAllowed(response: ServerResponse, methods: readonly string[], method: string | undefined): AenvError {
  response.setHeader('allow', methods.join(', '));
  return new AenvError('method_not_allowed', `method ${method} is not allowed here`);
}
