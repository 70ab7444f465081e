import type { IncomingMessage, ServerResponse } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { create, type DescMessage, fromJson, type Message, toJson } from '@bufbuild/protobuf';
import { sendJson } from '../server/answer.ts';
import { describeError, type Log } from '../server/log.ts';
import { writeChunk } from '../server/write.ts';
import type { Call } from './call.ts';
import { statusOf, toRpcError } from './codes.ts';
import { endFrame, jsonFrame, readFrames } from './frames.ts';
import { httpCall } from './http-call.ts';
import type { Answer, Method } from './methods.ts';

// Messages hold names and pieces of input, never whole files.
export const MESSAGE_MAX = 4 * 1024 * 1024;

/**
 * Serves a method to JSON clients, which all of E2B's are. The library has layers for every protocol, codec and
 * interceptor that there is; in an emulated guest a call through them takes about twice as long as one through this.
 */
export async function serveJson(
  method: Method,
  request: IncomingMessage,
  response: ServerResponse,
  log: Log,
): Promise<void> {
  if (method.kind === 'unary') await serveUnary(method, request, response, log);
  else await serveStream(method, request, response, log);
}

async function serveUnary(
  method: Method & { kind: 'unary' },
  request: IncomingMessage,
  response: ServerResponse,
  log: Log,
): Promise<void> {
  try {
    const call = httpCall(request, response);
    const message = decode(method.input, await readAll(request));
    const answer = await method.handle(message, call);
    sendJson(response, 200, toJson(method.output, create(method.output, answer)));
  } catch (error) {
    const { code, message } = toRpcError(error, log);
    sendJson(response, statusOf(code), { code, message });
  }
}

/** Errors of a stream are in its last frame, and its status is always 200: clients look at nothing else. */
async function serveStream(
  method: Exclude<Method, { kind: 'unary' }>,
  request: IncomingMessage,
  response: ServerResponse,
  log: Log,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/connect+json' });
  let end: Buffer;
  try {
    const call = httpCall(request, response);
    for await (const answer of answersOf(method, request, call)) {
      const bytes = method.encode?.(answer) ?? jsonFrame(toJson(method.output, create(method.output, answer)));
      if (!(await writeChunk(response, bytes))) return;
    }
    end = endFrame();
  } catch (error) {
    if (response.destroyed) return;
    end = endFrame(toRpcError(error, log));
  }
  response.end(end);
}

async function* answersOf(
  method: Exclude<Method, { kind: 'unary' }>,
  request: IncomingMessage,
  call: Call,
): AsyncGenerator<Answer> {
  const messages = readMessages(method.input, request);
  if (method.kind === 'client_streaming') {
    yield await method.handle(messages, call);
    return;
  }
  const { value: message, done } = await messages.next();
  if (done === true) throw new AenvError('invalid_request', 'the request has no message');
  if ((await messages.next()).done !== true) throw new AenvError('invalid_request', 'the request has several messages');
  yield* method.handle(message, call);
}

async function* readMessages(schema: DescMessage, request: IncomingMessage): AsyncGenerator<Message> {
  const bytes = request.iterator({ destroyOnReturn: false });
  for await (const message of readFrames(bytes, MESSAGE_MAX)) yield decode(schema, message);
}

function decode(schema: DescMessage, bytes: Buffer): Message {
  try {
    return fromJson(schema, JSON.parse(bytes.toString()), { ignoreUnknownFields: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : describeError(error);
    throw new AenvError('invalid_request', `malformed message: ${message}`, { cause: error });
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > MESSAGE_MAX) throw new AenvError('body_too_large', `the message is larger than ${MESSAGE_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
