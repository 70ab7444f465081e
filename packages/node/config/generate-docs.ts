import { type ConfigKey, configKeys } from './keys.ts';

/** The text of docs/reference/configuration.md. */
export function configurationPage(): string {
  const lines = [
    '# Configuration',
    '',
    'Generated from `packages/node/config/schema.ts`; do not edit.',
    '',
    'A node reads, each over the one before: the defaults below; the TOML file given with `--config` or `AENV_CONFIG`,',
    'else `config.toml` in the home folder if it is there; the environment variables below; flags of the command line.',
    'In environment variables lists are separated by commas, and an empty variable counts as not set. Unknown keys are',
    'refused by name.',
    '',
    'Secrets are not part of the configuration: the API key is in `secrets/api-key` in the home folder (made on the first',
    'start), or in the environment variable `AENV_API_KEY` (at least 32 characters of `A-Z a-z 0-9 _ -`).',
  ];
  let section: string | undefined;
  for (const key of configKeys()) {
    const prefix = key.name.includes('.') ? key.name.slice(0, key.name.indexOf('.')) : '';
    if (prefix !== section) {
      section = prefix;
      lines.push('', prefix === '' ? '## Top level' : `## \`[${prefix}]\``, '');
      lines.push('| Key | Type | Default | Environment | Meaning |', '|---|---|---|---|---|');
    }
    lines.push(row(key));
  }
  return `${lines.join('\n')}\n`;
}

function row(key: ConfigKey): string {
  const type = key.choices === undefined ? key.kind : key.choices.map((choice) => `\`"${choice}"\``).join(', ');
  const fallback = key.fallback === undefined ? (key.defaultText ?? 'not set') : `\`${JSON.stringify(key.fallback)}\``;
  return `| \`${key.name}\` | ${type} | ${fallback} | \`${key.env}\` | ${key.meaning} |`;
}

if (import.meta.main) process.stdout.write(configurationPage());
