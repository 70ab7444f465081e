import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';

const MAX_LINES = 400;

/** Names of source files that hold more than one idea's worth of lines, or undefined. */
export async function overlongFiles(): Promise<string | undefined> {
  const sources = ['*.ts', '*.mjs', '*.py', '*.c', '*.h'];
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...sources], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => file !== '' && !file.includes('/gen/'));
  const long: string[] = [];
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => '');
    const lines = text.split('\n').length - 1;
    if (lines > MAX_LINES) long.push(`${file}: ${lines} lines, at most ${MAX_LINES}; split it by concept`);
  }
  return long.length === 0 ? undefined : long.join('\n');
}
