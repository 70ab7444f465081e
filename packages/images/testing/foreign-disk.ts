import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '@aenv/platform/process/run.ts';
import type { TestFile } from './ext4.ts';
import { RawDisk } from './raw-disk.ts';

/**
 * An ext4 file system that mke2fs(8) has made, with large folders as hash trees.
 * @param args of mke2fs beside the size of blocks
 * @param fill puts files into the folder that becomes the root
 */
export async function foreignDisk(
  args: readonly string[],
  sizeBytes: number,
  fill: (root: string) => Promise<void>,
): Promise<TestFile> {
  const folder = await mkdtemp(join(tmpdir(), 'images-foreign-'));
  try {
    const [root, path] = [join(folder, 'root'), join(folder, 'disk')];
    await mkdir(root);
    await fill(root);
    await run(['mke2fs', '-q', '-t', 'ext4', '-b', '4096', ...args, '-d', root, path, `${sizeBytes / 1024}k`]);
    await run(['e2fsck', '-fyD', path], { okCodes: [0, 1] });
    await rm(root, { recursive: true });
    return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  } catch (error) {
    await rm(folder, { recursive: true });
    throw error;
  }
}

export async function writeFiles(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), content);
  }
}

/** Calls back with the disk, open for reading and writing. */
export async function withDisk<T>({ path }: Pick<TestFile, 'path'>, use: (disk: RawDisk) => Promise<T>): Promise<T> {
  await using file = await open(path, 'r+');
  return await use(new RawDisk(file));
}

/** What debugfs(8) says to a request. */
export async function debugfs(disk: TestFile, request: string): Promise<string> {
  return (await debugfsAll(disk, [request]))[0] ?? '';
}

/** What debugfs(8) says to each request. One process answers all: to start one costs more than the answer. */
export async function debugfsAll({ path }: TestFile, requests: readonly string[]): Promise<string[]> {
  const { stdout } = await run(['debugfs', '-f', '-', path], { input: Buffer.from(`${requests.join('\n')}\n`) });
  // It repeats each request.
  const answers: string[] = [];
  let at = 0;
  for (const request of requests) {
    const line = `debugfs: ${request}\n`;
    const start = stdout.indexOf(line, at);
    if (start < 0) throw new Error(`debugfs has not answered ${request}`);
    if (at > 0) answers.push(stdout.slice(at, start));
    at = start + line.length;
  }
  answers.push(stdout.slice(at));
  return answers;
}
