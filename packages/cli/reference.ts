import type { Command } from 'commander';
import { HOST_COMMANDS } from './host-commands.ts';
import { createProgram } from './program.ts';

/**
 * The CLI reference as Markdown.
 * @param hostHelp the help text of each host command, by name
 */
export function cliReference(hostHelp: Readonly<Record<string, string>>): string {
  const program = createProgram('');
  const lines = [
    '# CLI reference',
    '',
    'Generated from the commands themselves; do not edit.',
    '',
    '`aenv [--url URL] [--api-key KEY] COMMAND …`',
    '',
    'Settings come from flags, then `AENV_URL` and `AENV_API_KEY`, then the file that `aenv auth` writes, then the daemon',
    'of this host. Exit codes: 0 done, 1 failed, 2 wrong call; `exec`, `run` and shells pass on the code of the command.',
    '',
    '## Commands of this host',
    '',
  ];
  for (const { name, summary } of HOST_COMMANDS) {
    lines.push(`### aenv ${name}`, '', `${summary}.`, '');
    const help = hostHelp[name];
    if (help !== undefined) lines.push('```text', help.trimEnd(), '```', '');
  }
  lines.push('## Commands that talk to a server', '');
  const hostNames = new Set(HOST_COMMANDS.map((command) => command.name));
  for (const command of program.commands) {
    if (!hostNames.has(command.name()) && !command.name().startsWith('__')) describe(command, 'aenv', lines);
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

function describe(command: Command, path: string, lines: string[]): void {
  const name = `${path} ${command.name()}`;
  if (command.commands.length > 0) {
    for (const child of command.commands) describe(child, name, lines);
    return;
  }
  lines.push(`### ${name}`, '', command.description() || `${command.summary()}.`, '');
  lines.push('```text', `${name} ${command.usage()}`);
  for (const argument of command.registeredArguments)
    lines.push(`  ${argument.name().padEnd(28)}${argument.description}`);
  for (const option of command.options.filter((known) => !known.hidden))
    lines.push(`  ${option.flags.padEnd(28)}${option.description}`);
  lines.push('```', '');
  const aliases = command.aliases();
  if (aliases.length > 0) lines.push(`Also: ${aliases.map((alias) => `\`${alias}\``).join(', ')}.`, '');
}
