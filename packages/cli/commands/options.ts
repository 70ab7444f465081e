import { type Command, InvalidArgumentError, Option } from 'commander';
import type { SettingsFlags } from '../client/settings.ts';

/** `KEY=VALUE`, may be given more than once; the value may hold further equals signs and may be empty. */
export function collectPair(text: string, previous: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Must be of the form KEY=VALUE.');
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Whole seconds, greater than 0. */
export function parseSeconds(text: string): number {
  const value = decimal(text);
  if (value === undefined || value < 1) throw new InvalidArgumentError('Must be whole seconds above 0.');
  return value;
}

/** A whole number, greater than 0. */
export function parseWhole(text: string): number {
  const value = decimal(text);
  if (value === undefined || value < 1) throw new InvalidArgumentError('Must be a whole number above 0.');
  return value;
}

/** Digits and nothing else: `0x10` and `1e3` are slips of the keyboard rather than numbers that somebody meant. */
export function decimal(text: string): number | undefined {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** The members that are set. */
export function given(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

export const timeoutOption = () =>
  new Option('--timeout <seconds>', 'time to live of the sandbox').argParser(parseSeconds).default(300);

export const outputOption = () =>
  new Option('--output <format>', 'table or json; default: a table on a terminal, JSON in a pipe');

export const envOption = () =>
  new Option('-e, --env <KEY=VALUE>', 'environment variable, may be repeated')
    .argParser(collectPair)
    .default({}, 'none');

export const metadataOption = () =>
  new Option('--metadata <KEY=VALUE>', 'metadata, may be repeated').argParser(collectPair).default({}, 'none');

/** The flags of the program itself, wherever they stood. */
export function globalFlags(command: Command): SettingsFlags {
  const { url, apiKey } = command.optsWithGlobals<SettingsFlags>();
  return { ...(url === undefined ? {} : { url }), ...(apiKey === undefined ? {} : { apiKey }) };
}
