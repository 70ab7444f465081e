import { parseArgs } from 'node:util';
import type { StorageCommand } from './storage/storage.ts';

export type HostCommand =
  | { readonly name: 'help'; readonly of?: HostCommandName }
  | {
      readonly name: 'up';
      readonly foreground: boolean;
      readonly listen?: string;
      readonly config?: string;
    }
  | { readonly name: 'down'; readonly timeoutSeconds?: number; readonly config?: string }
  | { readonly name: 'cert'; readonly domain?: string; readonly out?: string; readonly config?: string }
  | { readonly name: 'selftest'; readonly of: 'restore'; readonly json: boolean; readonly config?: string }
  | { readonly name: 'doctor'; readonly fix: boolean; readonly json: boolean; readonly config?: string }
  | ({ readonly name: 'storage'; readonly config?: string } & StorageCommand);

const NAMES = ['up', 'down', 'doctor', 'cert', 'selftest', 'storage'] as const;
export type HostCommandName = (typeof NAMES)[number];

/** A wrong call: printed with the usage, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly command: HostCommandName | undefined;

  constructor(message: string, command?: HostCommandName) {
    super(message);
    this.command = command;
  }
}

/** @throws UsageError */
export function parseCommand(args: readonly string[]): HostCommand {
  const [name, ...rest] = args;
  if (name === 'help') {
    const of = rest[0];
    return isCommand(of) ? { name, of } : { name };
  }
  if (!isCommand(name)) throw new UsageError(name === undefined ? 'no command' : `unknown command ${name}`);
  if (rest.some((arg) => arg === '--help' || arg === '-h')) return { name: 'help', of: name };
  switch (name) {
    case 'up': {
      const { detach, foreground, listen, config } = options(name, rest, {
        detach: { type: 'boolean' },
        foreground: { type: 'boolean' },
        listen: { type: 'string' },
        config: { type: 'string' },
      });
      if (detach === true && foreground === true)
        throw new UsageError('--detach and --foreground exclude one another', name);
      return { name, foreground: foreground === true, ...text('listen', listen), ...text('config', config) };
    }
    case 'down': {
      const { timeout, config } = options(name, rest, { timeout: { type: 'string' }, config: { type: 'string' } });
      const timeoutSeconds = seconds(timeout);
      return { name, ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }), ...text('config', config) };
    }
    case 'cert': {
      const { domain, out, config } = options(name, rest, {
        domain: { type: 'string' },
        out: { type: 'string' },
        config: { type: 'string' },
      });
      return { name, ...text('domain', domainName(domain)), ...text('out', out), ...text('config', config) };
    }
    case 'selftest': {
      const [of, ...more] = rest;
      if (of !== 'restore') throw new UsageError('there is one test: restore', name);
      const { output, config } = options(name, more, {
        output: { type: 'string', short: 'o' },
        config: { type: 'string' },
      });
      return { name, of, json: isJson(name, output), ...text('config', config) };
    }
    case 'doctor': {
      const { fix, output, config } = options(name, rest, {
        fix: { type: 'boolean' },
        output: { type: 'string', short: 'o' },
        config: { type: 'string' },
      });
      return { name, fix: fix === true, json: isJson(name, output), ...text('config', config) };
    }
    case 'storage': {
      const [action, ...flags] = rest;
      if (action !== 'stat' && action !== 'verify' && action !== 'gc') {
        throw new UsageError('say one of stat, verify and gc', name);
      }
      const values: Readonly<Record<string, unknown>> = options(name, flags, {
        output: { type: 'string', short: 'o' },
        config: { type: 'string' },
        ...(action === 'gc' ? GC_OPTIONS : {}),
      });
      const removal = { all: values.all === true, dryRun: values['dry-run'] === true };
      return { name, action, json: isJson(name, values.output), ...removal, ...text('config', values.config) };
    }
  }
}

type OptionTypes = Readonly<Record<string, { readonly type: 'boolean' | 'string'; readonly short?: string }>>;

function options<T extends OptionTypes>(command: HostCommandName, args: readonly string[], types: T) {
  try {
    return parseArgs({ args: [...args], options: types, allowPositionals: false }).values;
  } catch (error) {
    const message = error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error);
    throw new UsageError(message, command);
  }
}

const GC_OPTIONS: OptionTypes = { all: { type: 'boolean' }, 'dry-run': { type: 'boolean' } };

function isJson(command: HostCommandName, output: unknown): boolean {
  if (output !== undefined && output !== 'json' && output !== 'table') {
    throw new UsageError('--output is table or json', command);
  }
  return output === 'json';
}

function seconds(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1 || number > 3600) {
    throw new UsageError('--timeout takes whole seconds from 1 to 3600', 'down');
  }
  return number;
}

/** A name below which a wildcard is honoured: clients take none directly below a top-level domain. */
function domainName(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const name = value.toLowerCase();
  const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
  const labels = name.split('.');
  if (name.length > 200 || labels.length < 2 || !labels.every((part) => label.test(part))) {
    throw new UsageError('--domain takes a domain name of two labels or more, such as sandbox.test', 'cert');
  }
  return name;
}

function text<K extends string>(key: K, value: unknown): { readonly [P in K]?: string } {
  return typeof value === 'string' ? ({ [key]: value } as { readonly [P in K]?: string }) : {};
}

function isCommand(name: string | undefined): name is HostCommandName {
  return NAMES.some((known) => known === name);
}
