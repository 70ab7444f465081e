import { lstat, mkdir, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import { Readable } from 'node:stream';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { ARCHIVE_KIND_HEADER, ARCHIVE_PATH, type UnpackAnswer } from '@aenv/contracts/envd/archive.ts';
import type { Command } from 'commander';
import type { EnvdClient } from '../client/envd.ts';
import { openControlPlane, openEnvd } from '../client/session.ts';
import { CliError } from '../output/cli-error.ts';
import { Progress } from '../output/progress.ts';
import { printable } from '../output/table.ts';
import { entryName, packTree } from '../transfer/pack.ts';
import { unpackTree } from '../transfer/unpack.ts';
import { globalFlags } from './options.ts';

export function registerTransfer(program: Command): void {
  program
    .command('upload')
    .summary('copy a file or tree into a sandbox')
    .description(
      'Copies a local file or the contents of a local folder into a sandbox, with modes, times, symbolic and hard links. ' +
        'Fifos, sockets and devices are skipped with a warning.',
    )
    .argument('<id>', 'id of the sandbox')
    .argument('<local>', 'local file or folder')
    .argument('[remote]', 'path in the sandbox; relative paths start in the home folder; default: the local name')
    .option('-u, --user <name>', 'owner of what is written')
    .action(
      async (id: string, local: string, remote: string | undefined, flags: { user?: string }, command: Command) => {
        const api = await openControlPlane(globalFlags(command));
        await upload(await openEnvd(api, id), local, remote ?? basename(resolve(local)), flags.user);
      },
    );

  program
    .command('download')
    .summary('copy a file or tree out of a sandbox')
    .description(
      'Copies a file or the contents of a folder of a sandbox to the local disk, with modes, times, symbolic and hard ' +
        'links. Nothing is written outside of the target. What exists is kept unless --force is given.',
    )
    .argument('<id>', 'id of the sandbox')
    .argument('<remote>', 'path in the sandbox; relative paths start in the home folder')
    .argument('[local]', 'local path; default: the name in the current folder')
    .option('-u, --user <name>', 'user whose home relative paths start in')
    .option('-f, --force', 'replace what exists')
    .action(
      async (
        id: string,
        remote: string,
        local: string | undefined,
        flags: { user?: string; force?: boolean },
        command: Command,
      ) => {
        const api = await openControlPlane(globalFlags(command));
        await download(await openEnvd(api, id), remote, local, flags);
      },
    );
}

async function upload(envd: EnvdClient, local: string, remote: string, user: string | undefined): Promise<void> {
  const info = await lstat(local).catch(() => {
    throw new CliError(`no such file or folder: ${local}`);
  });
  // A folder's contents go to the path itself, a file goes into the folder that the path names.
  const folder = info.isDirectory() ? remote : remote.endsWith('/') ? remote : posix.dirname(remote);
  const progress = new Progress(`upload ${printable(local)}`);
  const tar = packTree(local, entryName(remote, local), {
    onBytes: (count) => progress.add(count),
    onSkipped: (path, reason) => console.error(`aenv: skipped ${printable(path)}: ${reason}`),
  });
  const response = await envd.fetch(archiveUrl(folder, user), {
    method: 'POST',
    headers: { 'content-type': 'application/x-tar' },
    body: Readable.toWeb(tar) as unknown as ReadableStream,
    duplex: 'half',
  } as RequestInit);
  await check(response);
  const answer = (await response.json()) as UnpackAnswer;
  progress.end();
  for (const entry of answer.skipped) console.error(`aenv: skipped ${printable(entry.path)}: ${entry.reason}`);
}

async function download(
  envd: EnvdClient,
  remote: string,
  local: string | undefined,
  flags: { user?: string; force?: boolean },
): Promise<void> {
  const response = await envd.fetch(archiveUrl(remote, flags.user), { method: 'GET' });
  await check(response);
  if (response.body === null) throw new CliError('the sandbox sent no archive');
  const isFolder = response.headers.get(ARCHIVE_KIND_HEADER) === 'directory';
  const target = await chooseTarget(local ?? posix.basename(posix.resolve('/', remote)), remote, isFolder, flags.force);
  const progress = new Progress(`download ${printable(remote)}`);
  const source = Readable.fromWeb(response.body as unknown as WebStream);
  const result = await unpackTree(source, isFolder ? target : dirname(target), {
    onBytes: (count) => progress.add(count),
    ...(isFolder ? {} : { rename: basename(target) }),
  });
  progress.end();
  for (const entry of result.skipped) console.error(`aenv: skipped ${printable(entry.path)}: ${entry.reason}`);
}

/** Where the file or the folder's contents go; makes the folder, refuses to replace without being told to. */
async function chooseTarget(
  local: string,
  remote: string,
  isFolder: boolean,
  force: boolean | undefined,
): Promise<string> {
  const existing = await stat(local).catch(() => undefined);
  if (isFolder) {
    const entries = existing === undefined ? [] : await readdir(local);
    if (entries.length > 0 && force !== true) {
      throw new CliError(`${local} exists and is not empty`, 'Use --force to write into it.');
    }
    await mkdir(local, { recursive: true });
    return resolve(local);
  }
  const path = existing?.isDirectory() === true ? join(local, posix.basename(remote)) : local;
  if ((await lstat(path).catch(() => undefined)) !== undefined && force !== true) {
    throw new CliError(`${path} exists`, 'Use --force to replace it.');
  }
  await mkdir(dirname(resolve(path)), { recursive: true });
  return resolve(path);
}

function archiveUrl(path: string, user: string | undefined): string {
  const query = new URLSearchParams({ path, ...(user === undefined ? {} : { username: user }) });
  return `${ARCHIVE_PATH}?${query}`;
}

async function check(response: Response): Promise<void> {
  if (response.ok) return;
  const text = await response.text();
  let message = `the sandbox answered ${response.status}`;
  try {
    const body = JSON.parse(text) as { message?: unknown };
    if (typeof body.message === 'string') message = body.message;
  } catch {
    // not JSON: the status has to do
  }
  throw new CliError(message);
}
