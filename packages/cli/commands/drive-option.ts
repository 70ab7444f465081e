import { InvalidArgumentError, Option } from 'commander';
import { parseWhole } from './options.ts';

/** A drive as the API takes it. */
export interface DriveFlag {
  readonly driveID: string;
  readonly source: { readonly image: string };
  readonly readOnly?: boolean;
  readonly mountPath?: string;
  readonly subPath?: string;
  readonly diskSizeMB?: number;
}

/** `NAME=IMAGE[,rw][,path=DIR][,sub=DIR][,size=MiB]`, may be given more than once. */
export function collectDrive(text: string, previous: readonly DriveFlag[] = []): readonly DriveFlag[] {
  const [pair = '', ...settings] = text.split(',');
  const at = pair.indexOf('=');
  const image = pair.slice(at + 1);
  if (at < 1 || image === '') throw new InvalidArgumentError('Must begin with NAME=IMAGE.');
  const drive = { driveID: pair.slice(0, at), source: { image } };
  return [...previous, Object.assign(drive, ...settings.map(parseSetting))];
}

function parseSetting(text: string): Partial<DriveFlag> {
  if (text === 'rw' || text === 'ro') return { readOnly: text === 'ro' };
  const at = text.indexOf('=');
  const value = text.slice(at + 1);
  if (at > 0 && value !== '') {
    switch (text.slice(0, at)) {
      case 'path':
        return { mountPath: value };
      case 'sub':
        return { subPath: value };
      case 'size':
        return { diskSizeMB: parseWhole(value) };
    }
  }
  throw new InvalidArgumentError(`'${text}' is none of rw, ro, path=DIR, sub=DIR, size=MiB.`);
}

export const driveOption = () =>
  new Option(
    '--drive <NAME=IMAGE[,rw][,path=DIR][,sub=DIR][,size=MiB]>',
    'a disk made of an image, mounted at /mnt/NAME, read-only, unless told otherwise; may be repeated; with --cold',
  )
    .argParser(collectDrive)
    .default([], 'none');
