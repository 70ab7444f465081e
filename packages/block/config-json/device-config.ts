import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { MAX_LAYERS } from '../lsmt/format.ts';
import { Fields } from './fields.ts';

/** A read-only layer of a disk: a file, a folder to look in, or a blob of a registry. */
export interface LowerConfig {
  readonly file?: string;
  readonly dir?: string;
  readonly digest?: string;
  /** bytes of the blob */
  readonly size?: number;
  /** overrides that of the disk */
  readonly repoBlobUrl?: string;
  readonly uuid?: string;
}

/** How a layer is fetched as a whole in the background; times in seconds, `blockSize` in bytes. */
export interface DownloadConfig {
  readonly enable: boolean;
  readonly delay?: number;
  readonly delayExtra?: number;
  readonly maxMBps?: number;
  readonly tryCnt?: number;
  readonly blockSize?: number;
}

/** `config.json` of one disk, as the reference's tools write it. */
export interface DeviceConfig {
  /** https://HOST/v2/REPOSITORY/blobs */
  readonly repoBlobUrl?: string;
  /** bottom first, without the one that only accelerates */
  readonly lowers: readonly LowerConfig[];
  readonly upper?: { readonly data: string; readonly index: string };
  readonly resultFile?: string;
  /** Folder of the layer that has only a trace of what is read first. */
  readonly traceFolder?: string;
  readonly recordTracePath?: string;
  readonly download?: DownloadConfig;
}

const MAX_BYTES = 2 ** 20;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Reads a `config.json`. Members that say nothing here are left alone, as the document belongs to other programs.
 * @throws AenvError `image_invalid` with the path of the member
 */
export function parseDeviceConfig(text: string): DeviceConfig {
  if (text.length > MAX_BYTES) throw invalid('it is longer than 1 MiB');
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new AenvError('image_invalid', 'the description of a disk is no JSON', { cause: error });
  }
  const fields = Fields.of(json, 'config');
  // One more than a stack has, for the layer that only accelerates.
  const lowers = fields.list('lowers', MAX_LAYERS + 1).map(lowerOf);
  const accelerates = fields.flag('accelerationLayer');
  const trace = accelerates ? lowers.pop()?.dir : undefined;
  const upper = fields.object('upper');
  const data = upper?.text('data');
  const index = upper?.text('index');
  if ((data === undefined) !== (index === undefined)) throw invalid('config.upper has data or index, not both');
  return {
    lowers,
    ...optional('repoBlobUrl', fields.text('repoBlobUrl')),
    ...(data === undefined || index === undefined ? {} : { upper: { data, index } }),
    ...optional('resultFile', fields.text('resultFile')),
    ...optional('traceFolder', trace),
    ...optional('recordTracePath', fields.text('recordTracePath')),
    ...optional('download', downloadOf(fields.object('download'))),
  };
}

function lowerOf(fields: Fields): LowerConfig {
  const digest = fields.text('digest');
  if (digest !== undefined && !DIGEST.test(digest)) throw invalid(`${digest} is no sha256 digest`);
  if (fields.text('targetDigest') !== undefined || fields.text('gzipIndex') !== undefined) {
    throw invalid('layers that only point into an OCI layer (turboOCI) are not supported');
  }
  const lower: LowerConfig = {
    ...optional('file', fields.text('file')),
    ...optional('dir', fields.text('dir')),
    ...optional('digest', digest),
    ...optional('size', fields.count('size')),
    ...optional('repoBlobUrl', fields.text('repoBlobUrl')),
    ...optional('uuid', fields.text('uuid')),
  };
  if (lower.file ?? lower.dir ?? lower.digest) return lower;
  throw invalid('a lower has neither file nor dir nor digest');
}

function downloadOf(fields: Fields | undefined): DownloadConfig | undefined {
  if (fields === undefined) return undefined;
  return {
    enable: fields.flag('enable'),
    ...optional('delay', fields.count('delay')),
    ...optional('delayExtra', fields.count('delayExtra')),
    ...optional('maxMBps', fields.count('maxMBps')),
    ...optional('tryCnt', fields.count('tryCnt')),
    ...optional('blockSize', fields.count('blockSize')),
  };
}

function optional<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  const object: { [key in K]?: V } = {};
  if (value !== undefined) object[key] = value;
  return object;
}

function invalid(problem: string): AenvError {
  return new AenvError('image_invalid', `the description of a disk is wrong: ${problem}`);
}
