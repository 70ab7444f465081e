import type { IncomingMessage, ServerResponse } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { fileError } from '../filesystem/errors.ts';
import { metadataOf } from '../metadata/metadata.ts';
import { requireTokenOrSignature } from '../server/access.ts';
import { sendJson } from '../server/answer.ts';
import type { EnvdContext } from '../server/context.ts';
import { resolvePath } from '../users/paths.ts';
import type { User } from '../users/users.ts';
import { decodedBody } from './body.ts';
import { sendFile } from './download.ts';
import { receiveMultipart } from './multipart.ts';
import { UploadBatch } from './upload-batch.ts';

/** GET and HEAD /files: the bytes of one file. */
export async function download(
  context: EnvdContext,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const user = await authorize(context, request, url, 'read');
  const path = resolvePath(url.searchParams.get('path') ?? '', user, context.state.current.defaultWorkdir);
  try {
    await sendFile(path, request, response);
  } catch (error) {
    throw fileError(error, path);
  }
}

/** POST /files: one file as the body, or several as multipart/form-data. All of them are written, or none. */
export async function upload(
  context: EnvdContext,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const user = await authorize(context, request, url, 'write');
  const given = url.searchParams.get('path');
  const resolve = (path: string) => resolvePath(path, user, context.state.current.defaultWorkdir);
  const path = given === null || given === '' ? undefined : resolve(given);
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  await using batch = new UploadBatch(user, metadataOf(request.rawHeaders), context.attributes);
  if (type === 'multipart/form-data') {
    await receiveMultipart(request, decodedBody(request), async (filename, content) => {
      await batch.add(path ?? resolve(required(filename)), content);
    });
  } else if (type === 'application/octet-stream') {
    if (path === undefined) throw new AenvError('invalid_request', 'the query parameter `path` is missing');
    await batch.add(path, decodedBody(request));
  } else {
    throw new AenvError('invalid_request', `content type '${type}' is neither multipart/form-data nor octet-stream`);
  }
  sendJson(response, 200, await batch.commit());
}

function required(filename: string | undefined): string {
  if (filename) return filename;
  throw new AenvError('invalid_request', 'a part has no filename, and the query parameter `path` is missing');
}

/** Checks token or signature, then the user. */
export async function authorize(
  context: EnvdContext,
  request: IncomingMessage,
  url: URL,
  operation: 'read' | 'write',
): Promise<User> {
  const query = url.searchParams;
  const username = query.get('username') ?? '';
  const signed = {
    path: query.get('path') ?? '',
    operation,
    username,
    signature: query.get('signature') ?? undefined,
    expiration: query.get('signature_expiration') ?? undefined,
  };
  requireTokenOrSignature(request, signed, context.state.current.accessToken, Date.now());
  return context.users.fromQuery(username);
}
