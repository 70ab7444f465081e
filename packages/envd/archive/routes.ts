import { lstat, stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ARCHIVE_KIND_HEADER } from '@aenv/contracts/envd/archive.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { decodedBody } from '../files/body.ts';
import { authorize } from '../files/routes.ts';
import { fileError } from '../filesystem/errors.ts';
import { sendJson } from '../server/answer.ts';
import type { EnvdContext } from '../server/context.ts';
import { writeChunk } from '../server/write.ts';
import { resolvePath } from '../users/paths.ts';
import { packTree } from './pack.ts';
import { unpackTree } from './unpack.ts';

/** GET: a file or a tree as a tar archive. */
export async function pack(
  context: EnvdContext,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const user = await authorize(context, request, url, 'read');
  const path = resolvePath(url.searchParams.get('path') ?? '', user, context.state.current.defaultWorkdir);
  const kind = await kindOf(path);
  response.writeHead(200, { 'content-type': 'application/x-tar', [ARCHIVE_KIND_HEADER]: kind });
  for await (const chunk of packTree(path, kind)) {
    if (chunk.length > 0 && !(await writeChunk(response, chunk))) return;
  }
  response.end();
}

/** POST: unpacks the body below the path. */
export async function unpack(
  context: EnvdContext,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const user = await authorize(context, request, url, 'write');
  const path = resolvePath(url.searchParams.get('path') ?? '', user, context.state.current.defaultWorkdir);
  const body = decodedBody(request);
  try {
    sendJson(response, 200, await unpackTree(body.iterator({ destroyOnReturn: false }), path, user));
  } catch (error) {
    body.resume();
    throw fileError(error, path);
  }
}

async function kindOf(path: string): Promise<'directory' | 'file'> {
  try {
    const entry = await lstat(path);
    if (entry.isDirectory()) return 'directory';
    if (entry.isSymbolicLink()) return (await isFolder(path)) ? 'directory' : 'file';
    if (entry.isFile()) return 'file';
  } catch (error) {
    throw fileError(error, path);
  }
  throw new AenvError('path_invalid', `path '${path}' is neither a file nor a directory`);
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
