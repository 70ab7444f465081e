import type { IncomingMessage, ServerResponse } from 'node:http';
import { Filesystem } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { Process } from '@aenv/contracts/envd/gen/process_pb.ts';
import { createConnectRouter } from '@connectrpc/connect';
import { filesystemService } from '../filesystem/service.ts';
import { processService } from '../process/service.ts';
import type { EnvdContext } from '../server/context.ts';
import { errorInterceptor } from './errors.ts';
import { serveCall } from './node-adapter.ts';

/** Serves a request if its path is that of a method; otherwise returns false and does nothing. */
export type RpcServer = (path: string, request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

// Messages hold names and pieces of input, never whole files.
const MESSAGE_MAX = 4 * 1024 * 1024;

export function createRpcServer(context: EnvdContext): RpcServer {
  const router = createConnectRouter({
    connect: true,
    grpc: false,
    grpcWeb: false,
    acceptCompression: [],
    readMaxBytes: MESSAGE_MAX,
    interceptors: [errorInterceptor(context.log)],
  });
  router.service(Process, processService(context));
  router.service(Filesystem, filesystemService(context));
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return async (path, request, response) => {
    const handler = handlers.get(path);
    if (handler === undefined) return false;
    await serveCall(handler, request, response);
    return true;
  };
}
