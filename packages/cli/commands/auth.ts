import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { ControlPlane } from '../client/control-plane.ts';
import { writeCredentials } from '../client/credentials.ts';
import { credentialsPath, trimUrl } from '../client/settings.ts';
import { CliError } from '../output/cli-error.ts';
import { globalFlags } from './options.ts';

export function registerAuth(program: Command): void {
  program
    .command('auth')
    .summary('store the address of a server and its API key')
    .description(
      'Stores the address of a server and its API key in a file that only you can read, after the server accepted them. ' +
        'Asks for what is not given; the key can also come from standard input.',
    )
    .action(async (_options, command: Command) => {
      const flags = globalFlags(command);
      const fallback = process.env.AENV_URL || 'http://127.0.0.1:8000';
      const typed = flags.url ?? (process.stdin.isTTY ? await ask(`Server [${fallback}]: `, false) : '');
      const url = trimUrl(typed.trim() === '' ? fallback : typed.trim());
      const apiKey = flags.apiKey ?? (process.env.AENV_API_KEY || (await readKey()));
      if (apiKey === '') throw new CliError('no key given', undefined, 2);
      await new ControlPlane({ url, apiKey }).templates();
      const path = credentialsPath(process.env);
      await writeCredentials(path, { url, apiKey });
      console.error(`stored in ${path}`);
    });

  async function readKey(): Promise<string> {
    if (process.stdin.isTTY) return (await ask('API key: ', true)).trim();
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString().trim();
  }
}

/** One line from the terminal; what is typed stays invisible when `hidden`. */
async function ask(question: string, hidden: boolean): Promise<string> {
  process.stderr.write(question);
  const output = hidden ? new Writable({ write: (_chunk, _encoding, done) => done() }) : process.stderr;
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  try {
    return await lines.question('');
  } finally {
    lines.close();
    if (hidden) process.stderr.write('\n');
  }
}
