import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import {
  HEADER_SIZE,
  MAX_LOCAL_ENTRIES,
  MAX_LOG_ENTRIES,
  MAX_SECTORS,
  NULL_UUID,
  SEGMENT_SIZE,
} from '../../lsmt/format.ts';
import { decodeHeader, encodeHeader, type LayerHeader } from '../../lsmt/header.ts';
import { replayLog } from '../../lsmt/index-log.ts';
import { SectorMap } from '../../lsmt/sector-map.ts';
import { writePadding } from '../../lsmt/segment.ts';
import { SECTOR_SIZE, type WritableLayer } from '../contract.ts';
import type { LayerFiles, RandomFile } from '../files/contract.ts';
import { hostFiles } from '../files/host.ts';
import { AppendLayer, type LayerLimits } from './append-layer.ts';
import { layerPaths } from './paths.ts';
import { currentBootId, PendingLog } from './pending-log.ts';

export interface WritableLayerPlace {
  /** Folder of the layer, on the disk; it holds one layer. */
  readonly folder: string;
  /** File on a file system in memory (as below /run) for index entries that are not synced yet. */
  readonly pendingPath: string;
  readonly files?: LayerFiles;
  /** Id of this boot of the host; that of the kernel if absent. */
  readonly bootId?: string;
  /** those of the format if absent */
  readonly limits?: LayerLimits;
}

const LIMITS: LayerLimits = { logEntries: MAX_LOG_ENTRIES, segments: MAX_LOCAL_ENTRIES };

export interface NewLayer extends WritableLayerPlace {
  readonly uuid: string;
  /** That of the layer below. */
  readonly parentUuid?: string;
  /** bytes, a multiple of 512, at most 2 TiB */
  readonly virtualSize: number;
  readonly userTag?: string;
}

/** Bytes of a log that are replayed in one go. */
const REPLAY_CHUNK = 4 * 2 ** 20;

/**
 * Makes the files of an empty writable layer; when it resolves they are on the disk. The folder is made if it is not there.
 * @throws AenvError `no_space`, `io_failed`
 */
export async function createWritableLayer(options: NewLayer): Promise<WritableLayer> {
  const { folder, pendingPath, parentUuid = NULL_UUID, virtualSize, userTag = '', files = hostFiles } = options;
  const uuid = options.uuid.toLowerCase();
  if (virtualSize % SECTOR_SIZE !== 0 || virtualSize / SECTOR_SIZE > MAX_SECTORS) {
    throw new RangeError(`a disk cannot have ${virtualSize} bytes`);
  }
  await files.makeFolder(folder);
  const paths = layerPaths(folder);
  await using undo = new Rollback();
  const common = { uuid, parentUuid, virtualSize, userTag };
  const data = await made(files, paths.data, encodeHeader(common), undo);
  const index = await made(files, paths.index, encodeHeader({ ...common, isDataFile: false, indexOffset: 4096 }), undo);
  await Promise.all([data.sync(), index.sync()]);
  await files.syncFolder(folder);
  await files.syncFolder(dirname(folder));
  const pending = await PendingLog.create(files, pendingPath, uuid, options.bootId ?? currentBootId());
  undo.keep();
  return new AppendLayer({
    ...common,
    limits: options.limits ?? LIMITS,
    folder,
    files,
    data,
    index,
    pending,
    map: new SectorMap(virtualSize / SECTOR_SIZE),
    dataEnd: HEADER_SIZE,
    indexEnd: HEADER_SIZE,
    pendingEntries: new Uint8Array(0),
  });
}

/**
 * Opens a writable layer again, after an orderly end, a crash of the process or a power cut: replays the index, then what
 * is left in the pending log. Entries that point at data which is not there are wiped, lest they come to life when the
 * data file grows.
 * @throws AenvError `layer_corrupt` if the files are no writable layer, `io_failed`
 */
export async function reopenWritableLayer(place: WritableLayerPlace): Promise<WritableLayer> {
  const { folder, pendingPath, files = hostFiles } = place;
  const paths = layerPaths(folder);
  await using undo = new Rollback();
  const data = await existing(files, paths.data, undo);
  const index = await existing(files, paths.index, undo);
  const header = headerOf(data, paths.data, true);
  const indexHeader = headerOf(index, paths.index, false);
  if (indexHeader.uuid !== header.uuid) throw corrupt(paths.index, 'belongs to another layer');
  const { uuid, parentUuid, userTag, virtualSize } = header;
  const sectors = virtualSize / SECTOR_SIZE;
  if (!Number.isInteger(sectors) || sectors > MAX_SECTORS)
    throw corrupt(paths.data, 'has a size that no disk can have');
  const map = new SectorMap(sectors);
  const dataSectors = Math.floor(data.size() / SECTOR_SIZE);

  const entries = Math.floor((index.size() - HEADER_SIZE) / SEGMENT_SIZE);
  if (entries > MAX_LOG_ENTRIES) throw corrupt(paths.index, 'is longer than any log');
  const indexEnd = HEADER_SIZE + entries * SEGMENT_SIZE;
  let wiped = false;
  for (let at = HEADER_SIZE; at < indexEnd; at += REPLAY_CHUNK) {
    const chunk = new Uint8Array(Math.min(REPLAY_CHUNK, indexEnd - at));
    index.readSync(chunk, at);
    for (const invalid of replayLog(chunk, map, sectors, dataSectors).invalid) {
      index.writeSync([padding()], at + invalid);
      wiped = true;
    }
    await new Promise(setImmediate);
  }
  if (wiped) await index.sync();

  const [pending, pendingEntries] = await PendingLog.open(files, pendingPath, uuid, place.bootId ?? currentBootId());
  undo.add(() => pending.close());
  for (const invalid of replayLog(pendingEntries, map, sectors, dataSectors).invalid) {
    pending.overwrite(padding(), invalid);
    pendingEntries.set(padding(), invalid);
  }
  undo.keep();
  return new AppendLayer({
    ...{ folder, uuid, parentUuid, userTag, virtualSize, files, data, index, pending, map, pendingEntries, indexEnd },
    limits: place.limits ?? LIMITS,
    dataEnd: Math.max(HEADER_SIZE, Math.ceil(data.size() / SECTOR_SIZE) * SECTOR_SIZE),
  });
}

async function made(files: LayerFiles, path: string, header: Buffer, undo: Rollback): Promise<RandomFile> {
  const file = await files.create(path);
  // The first error is the one that counts: where it came from, removing may fail too.
  undo.add(() => files.remove(path).catch(() => {}));
  undo.add(() => file.close().catch(() => {}));
  file.writeSync([header], 0);
  return file;
}

async function existing(files: LayerFiles, path: string, undo: Rollback): Promise<RandomFile> {
  const file = await files.open(path);
  if (file === undefined) throw corrupt(path, 'does not exist');
  undo.add(() => file.close());
  return file;
}

function headerOf(file: RandomFile, path: string, isDataFile: boolean): LayerHeader {
  if (file.size() < HEADER_SIZE) throw corrupt(path, 'is shorter than its header');
  const bytes = new Uint8Array(HEADER_SIZE);
  file.readSync(bytes, 0);
  const header = decodeHeader(bytes);
  if (!header.isHeader || header.isDataFile !== isDataFile || header.isSealed || header.isSparse) {
    throw corrupt(path, 'is of another kind than its name says');
  }
  return header;
}

function padding(): Uint8Array {
  const bytes = new Uint8Array(SEGMENT_SIZE);
  writePadding(new DataView(bytes.buffer), 0);
  return bytes;
}

function corrupt(path: string, problem: string): AenvError {
  return new AenvError('layer_corrupt', `the layer's file ${path} ${problem}`);
}
