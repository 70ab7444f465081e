import { Argument, type Command } from 'commander';
import { openControlPlane } from '../client/session.ts';
import { candidates } from '../completion/candidates.ts';
import { COMPLETION_SCRIPTS } from '../completion/scripts.ts';
import { globalFlags } from './options.ts';

/** A key press must not wait longer for a server. */
const BUDGET_MS = 1_000;

export function registerCompletion(program: Command): void {
  program
    .command('completion')
    .summary('print a completion script for a shell')
    .description(
      'Prints a completion script. bash: `source <(aenv completion bash)`; zsh: `source <(aenv completion zsh)`; fish: ' +
        '`aenv completion fish | source`.',
    )
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(Object.keys(COMPLETION_SCRIPTS)))
    .action((shell: string) => {
      process.stdout.write(COMPLETION_SCRIPTS[shell] ?? '');
    });

  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[], _flags, command: Command) => {
      const signal = AbortSignal.timeout(BUDGET_MS);
      const api = async () => await openControlPlane(globalFlags(command));
      const quietly = async (look: () => Promise<readonly string[]>) => await look().catch(() => []);
      const found = await candidates(program, words, {
        ids: () =>
          quietly(async () => (await (await api()).list(new URLSearchParams(), signal)).map((s) => s.sandboxID)),
        templates: () =>
          quietly(async () =>
            (await (await api()).templates(signal)).flatMap((t) => (t.aliases.length > 0 ? t.aliases : [t.templateID])),
          ),
        snapshots: () =>
          quietly(async () => (await (await api()).snapshots({}, signal)).map(({ snapshotID }) => snapshotID)),
      });
      console.log(found.join('\n'));
    });
}
