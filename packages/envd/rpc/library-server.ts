import type { IncomingMessage, ServerResponse } from 'node:http';
import { Filesystem } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { Process } from '@aenv/contracts/envd/gen/process_pb.ts';
import type { DescService } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createConnectRouter,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
} from '@connectrpc/connect';
import type { UniversalServerRequest, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { sendJson } from '../server/answer.ts';
import type { Log } from '../server/log.ts';
import { writeChunk } from '../server/write.ts';
import type { Call } from './call.ts';
import { type RpcCode, toRpcError } from './codes.ts';
import { MESSAGE_MAX } from './json-server.ts';
import type { Method } from './methods.ts';

/** Serves a request of a path that is among the methods. */
export type LibraryServer = (path: string, request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The same methods for clients that send protobuf, by the Connect library. Loaded when the first one comes. */
export function createLibraryServer(methods: ReadonlyMap<string, Method>, log: Log): LibraryServer {
  const router = createConnectRouter({
    connect: true,
    grpc: false,
    grpcWeb: false,
    acceptCompression: [],
    readMaxBytes: MESSAGE_MAX,
    interceptors: [errorInterceptor(log)],
  });
  for (const service of [Process, Filesystem]) router.service(service, implementationOf(service, methods));
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return async (path, request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const answer = await handlers.get(path)?.(toUniversal(request, gone.signal));
    if (answer?.body === undefined) {
      const status = answer?.status ?? 404;
      return sendJson(response, status, { code: status, message: 'this content type is not served here' });
    }
    // Written at once and unbuffered: clients wait for the first message with a time limit.
    response.writeHead(answer.status, headersOf(answer));
    for await (const chunk of answer.body) {
      if (!(await writeChunk(response, chunk))) break;
    }
    response.end();
  };
}

function implementationOf(
  service: DescService,
  methods: ReadonlyMap<string, Method>,
): Partial<ServiceImpl<typeof service>> {
  const implementation: Record<string, unknown> = {};
  for (const { name, localName } of service.methods) {
    const method = methods.get(`/${service.typeName}/${name}`);
    if (method === undefined) continue;
    // A message, or a stream of them: the kind of the method is the same on both sides.
    const handle = method.handle as (input: unknown, call: Call) => unknown;
    implementation[localName] = (input: unknown, context: HandlerContext) => handle(input, toCall(context));
  }
  return implementation as Partial<ServiceImpl<typeof service>>;
}

function toCall(context: HandlerContext): Call {
  return {
    header: (name) => context.requestHeader.get(name) ?? undefined,
    timeoutMs: () => context.timeoutMs(),
    signal: context.signal,
  };
}

function errorInterceptor(log: Log): Interceptor {
  return (next) => async (request) => {
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: convertErrors(response.message, log) } : response;
    } catch (error) {
      throw toConnectError(error, log);
    }
  };
}

async function* convertErrors<T>(messages: AsyncIterable<T>, log: Log): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw toConnectError(error, log);
  }
}

const CODES: Readonly<Record<RpcCode, Code>> = {
  canceled: Code.Canceled,
  unknown: Code.Unknown,
  invalid_argument: Code.InvalidArgument,
  deadline_exceeded: Code.DeadlineExceeded,
  not_found: Code.NotFound,
  already_exists: Code.AlreadyExists,
  permission_denied: Code.PermissionDenied,
  resource_exhausted: Code.ResourceExhausted,
  unimplemented: Code.Unimplemented,
  internal: Code.Internal,
  unavailable: Code.Unavailable,
  unauthenticated: Code.Unauthenticated,
};

function toConnectError(error: unknown, log: Log): ConnectError {
  if (error instanceof ConnectError) return error;
  const { code, message } = toRpcError(error, log);
  return new ConnectError(message, CODES[code]);
}

function toUniversal(request: IncomingMessage, signal: AbortSignal): UniversalServerRequest {
  const header = new Headers();
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    for (const value of values ?? []) header.append(name, value);
  }
  return {
    httpVersion: request.httpVersion,
    method: request.method ?? '',
    url: new URL(request.url ?? '/', 'http://envd').href,
    header,
    body: request.iterator({ destroyOnReturn: false }),
    signal,
  };
}

function headersOf(answer: UniversalServerResponse): Record<string, string> {
  return Object.fromEntries(answer.header ?? []);
}
