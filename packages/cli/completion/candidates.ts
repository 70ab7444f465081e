import type { Command } from 'commander';

/** What may stand where a word is being typed; names of the server are looked up only where they can stand. */
export interface Lookups {
  ids(): Promise<readonly string[]>;
  templates(): Promise<readonly string[]>;
  snapshots(): Promise<readonly string[]>;
}

/**
 * Candidates for the last of `words` (everything after the program's name; the last one may be empty).
 */
export async function candidates(program: Command, words: readonly string[], lookups: Lookups): Promise<string[]> {
  const typed = words.at(-1) ?? '';
  let command = program;
  let positionals = 0;
  for (let at = 0; at < words.length - 1; at++) {
    const word = words[at] ?? '';
    if (word.startsWith('-')) {
      const option = command.options.find((candidate) => candidate.long === word || candidate.short === word);
      if (option?.required === true) at++;
      continue;
    }
    const child = command.commands.find((candidate) => candidate.name() === word || candidate.aliases().includes(word));
    if (child !== undefined && positionals === 0) command = child;
    else positionals++;
  }
  const all = typed.startsWith('-') ? optionNames(command) : await positionalWords(command, positionals, lookups);
  return all.filter((word) => word.startsWith(typed)).sort();
}

function optionNames(command: Command): string[] {
  const options = [...command.options, ...(command.parent?.options ?? [])];
  return [...new Set(options.flatMap((option) => (option.long ? [option.long] : [])))];
}

async function positionalWords(command: Command, positionals: number, lookups: Lookups): Promise<readonly string[]> {
  if (command.commands.length > 0) {
    return command.commands.filter((child) => !child.name().startsWith('__')).map((child) => child.name());
  }
  const argument = command.registeredArguments[positionals] ?? command.registeredArguments.at(-1);
  if (argument?.name() === 'id' && (positionals === 0 || argument.variadic)) return await lookups.ids();
  if (argument?.name() === 'template' && positionals === 0) return await lookups.templates();
  if (argument?.name() === 'snapshot') return await lookups.snapshots();
  return argument?.argChoices ?? [];
}
