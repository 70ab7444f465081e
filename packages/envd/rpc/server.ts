import type { IncomingMessage, ServerResponse } from 'node:http';
import { Filesystem, WatchDirResponseSchema } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { ConnectResponseSchema, Process, StartResponseSchema } from '@aenv/contracts/envd/gen/process_pb.ts';
import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { filesystemService } from '../filesystem/service.ts';
import { encodeChange } from '../filesystem/watch/encode-change.ts';
import { type EventMessage, encodeEvent } from '../process/encode-event.ts';
import { processService } from '../process/service.ts';
import { sendJson } from '../server/answer.ts';
import type { EnvdContext } from '../server/context.ts';
import { serveJson } from './json-server.ts';
import type { LibraryServer } from './library-server.ts';
import { type Encoder, methodsOf } from './methods.ts';

/** Serves a request if its path is that of a method; otherwise returns false and does nothing. */
export type RpcServer = (path: string, request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

const JSON_TYPES = { unary: 'application/json', stream: 'application/connect+json' };
const PROTO_TYPES = { unary: 'application/proto', stream: 'application/connect+proto' };

export function createRpcServer(context: EnvdContext): RpcServer {
  const encode: Encoder = (answer) => encodeEvent(answer as unknown as EventMessage);
  const encoders = new Map<DescMessage, Encoder>([
    [StartResponseSchema, encode],
    [ConnectResponseSchema, encode],
  ]);
  const methods = new Map([
    ...methodsOf(Process, processService(context), encoders),
    ...methodsOf(
      Filesystem,
      filesystemService(context),
      new Map([
        [WatchDirResponseSchema, (answer) => encodeChange(answer as MessageInitShape<typeof WatchDirResponseSchema>)],
      ]),
    ),
  ]);
  let library: Promise<LibraryServer> | undefined;
  return async (path, request, response) => {
    const method = methods.get(path);
    if (method === undefined) return false;
    const kind = method.kind === 'unary' ? 'unary' : 'stream';
    const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
    if (type === JSON_TYPES[kind]) {
      await serveJson(method, request, response, context.log);
    } else if (type === PROTO_TYPES[kind]) {
      library ??= import('./library-server.ts').then((module) => module.createLibraryServer(methods, context.log));
      await (await library)(path, request, response);
    } else {
      const accepted = `${JSON_TYPES[kind]} and ${PROTO_TYPES[kind]}`;
      const message = `content type '${type}' is not served by ${method.name}, which takes ${accepted}`;
      sendJson(response, 415, { code: 415, message }, { 'accept-post': accepted.replace(' and ', ', ') });
    }
    return true;
  };
}
