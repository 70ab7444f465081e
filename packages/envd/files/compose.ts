import { constants } from 'node:fs';
import { open, stat, unlink } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { posix } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { errnoOf, fileError } from '../filesystem/errors.ts';
import { sendJson } from '../server/answer.ts';
import { readJson } from '../server/body.ts';
import type { EnvdContext } from '../server/context.ts';
import { describeError } from '../server/log.ts';
import { resolvePath } from '../users/paths.ts';
import { StagedFile } from './staged-file.ts';
import type { WrittenFile } from './upload-batch.ts';

const BODY_MAX = 1024 * 1024;
const CHUNK = 256 * 1024;

interface ComposeRequest {
  readonly sources: readonly string[];
  readonly destination: string;
  readonly username: string | undefined;
}

interface Source {
  /** as the client named it */
  readonly asked: string;
  readonly path: string;
}

/**
 * POST /files/compose: joins files to one, in their order, and removes them. The destination appears when it is complete;
 * before that, a failure leaves everything as it was.
 */
export async function compose(context: EnvdContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { sources: asked, destination, username } = parseRequest(await readJson(request, BODY_MAX));
  const user = await context.users.fromQuery(username);
  const resolve = (path: string) => resolvePath(path, user, context.state.current.defaultWorkdir);
  const target = resolve(destination);
  const sources = asked.map((path) => ({ asked: path, path: resolve(path) }));
  await checkSources(sources, target);
  try {
    const staged = await StagedFile.create(target, user);
    try {
      for (const source of sources) await append(staged, source, response);
      await staged.commit();
    } finally {
      await staged.discard();
    }
  } catch (error) {
    throw fileError(error, target);
  }
  for (const path of new Set(sources.map((source) => source.path))) {
    await unlink(path).catch((error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') context.log('warn', 'source of compose stays', { error: describeError(error) });
    });
  }
  sendJson(response, 200, { name: posix.basename(target), path: target, type: 'file' } satisfies WrittenFile);
}

function parseRequest(body: unknown): ComposeRequest {
  if (typeof body !== 'object' || body === null) throw invalid('the body must be an object');
  const { source_paths: sources, destination, username } = body as Record<string, unknown>;
  if (!Array.isArray(sources) || sources.length === 0 || !sources.every((path) => typeof path === 'string')) {
    throw invalid('`source_paths` must be a list of paths that is not empty');
  }
  if (typeof destination !== 'string' || destination === '') throw invalid('`destination` is missing');
  if (username !== undefined && username !== null && typeof username !== 'string') {
    throw invalid('`username` must be a text');
  }
  return { sources, destination, username: username ?? undefined };
}

/** What cannot be joined is refused before anything is written. */
async function checkSources(sources: readonly Source[], target: string): Promise<void> {
  const there = await stat(target).catch(() => undefined);
  for (const { asked, path } of sources) {
    const stats = await stat(path).catch((error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') throw fileError(error, path);
      throw new AenvError('path_not_found', `source file not found: ${asked}`);
    });
    if (!stats.isFile()) throw invalid(`source path is not a regular file: ${asked}`);
    // Whatever leads to it: the source is removed at the end.
    if (path === target || (there !== undefined && there.ino === stats.ino && there.dev === stats.dev)) {
      throw invalid(`source path '${asked}' cannot be the same as destination`);
    }
  }
}

async function append(staged: StagedFile, { asked, path }: Source, response: ServerResponse): Promise<void> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw fileError(error, asked);
  });
  // It may be another one by now.
  if (!(await file.stat()).isFile()) throw invalid(`source path is not a regular file: ${asked}`);
  const buffer = Buffer.alloc(CHUNK);
  for (;;) {
    if (response.destroyed) throw invalid('the client has left');
    const { bytesRead } = await file.read(buffer, 0, CHUNK);
    if (bytesRead === 0) return;
    await staged.append(buffer.subarray(0, bytesRead));
  }
}

function invalid(message: string): AenvError {
  return new AenvError('invalid_request', message);
}
