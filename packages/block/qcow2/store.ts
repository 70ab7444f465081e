import { chmod, chown, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import type { BlockDevice, BlockStore, NewDisk } from '../contract.ts';
import { assertSearchable } from './reachable.ts';

/** A program of QEMU that may stand outside the host's own folders, with the variables that it needs to start. */
export interface QemuImg {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface Qcow2StoreOptions {
  /** folder of the volumes, made when missing (0711: VMs reach their own file by name, none can list) */
  readonly dir: string;
  readonly qemuImg: () => QemuImg | Promise<QemuImg>;
  readonly log: Logger;
}

const SUFFIX = '.qcow2';
const ID = /^[a-z0-9][a-z0-9-]{0,127}$/;

/**
 * Volumes as qcow2 overlays over raw base files: one file `<id>.qcow2` each, which a VM opens by itself. A volume is
 * complete or absent, since `qemu-img` writes it under a temporary name.
 */
export function createQcow2Store(options: Qcow2StoreOptions): BlockStore {
  const { dir, log } = options;

  function pathOf(id: string): string {
    if (!ID.test(id)) throw new AenvError('internal', `not a volume id: ${JSON.stringify(id.slice(0, 140))}`);
    return join(dir, id + SUFFIX);
  }

  async function remove(id: string): Promise<void> {
    await rm(pathOf(id), { force: true });
    await rm(`${pathOf(id)}.new`, { force: true });
    log.debug('volume removed', { volume: id });
  }

  async function create(id: string, { origin, sizeBytes }: NewDisk): Promise<BlockDevice> {
    const path = pathOf(id);
    const base = origin.kind === 'layers' ? origin.layers[0] : undefined;
    if (base === undefined) throw noSnapshots();
    await mkdir(dir, { recursive: true, mode: 0o711 });
    // The mode of mkdir is cut by the umask and left alone when the folder was there.
    await chmod(dir, 0o711);
    await assertSearchable(dir);
    await assertSearchable(dirname(base));
    if (await exists(path)) throw new AenvError('internal', `volume ${id} exists already`);
    const program = await options.qemuImg();
    const temporary = `${path}.new`;
    try {
      await run([program.path, 'create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', base, temporary, String(sizeBytes)], {
        env: { ...process.env, ...program.env },
      });
      await chmod(temporary, 0o600);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw asSpaceError(error);
    }
    log.debug('volume created', { volume: id, base });
    return new Qcow2Volume(id, path, sizeBytes, () => remove(id));
  }

  async function list(): Promise<string[]> {
    let names: string[];
    try {
      names = await readdir(dir);
    } catch (error) {
      if (isMissing(error)) return [];
      throw AenvError.from(error);
    }
    // A temporary file of a crash counts under its id too, so that whoever cleans up finds it.
    const ids = names.map((name) => name.replace(/\.new$/, '')).filter((name) => name.endsWith(SUFFIX));
    return [...new Set(ids.map((name) => name.slice(0, -SUFFIX.length)))].filter((id) => ID.test(id)).sort();
  }

  return { create, list, remove, listSnapshots: async () => [], removeSnapshot: async () => {} };
}

class Qcow2Volume implements BlockDevice {
  readonly id: string;
  readonly sizeBytes: number;
  readonly #path: string;
  readonly #remove: () => Promise<void>;

  constructor(id: string, path: string, sizeBytes: number, remove: () => Promise<void>) {
    this.id = id;
    this.sizeBytes = sizeBytes;
    this.#path = path;
    this.#remove = remove;
  }

  async attach(uid: number) {
    await chown(this.#path, uid, uid);
    return { kind: 'file', path: this.#path, format: 'qcow2', readOnly: false } as const;
  }

  async flushBeforeCapture(): Promise<void> {
    await using file = await open(this.#path, 'r');
    await file.sync();
    await syncFolder(dirname(this.#path));
  }

  async prepareSnapshot(): Promise<void> {
    throw noSnapshots();
  }

  async snapshot(): Promise<never> {
    throw noSnapshots();
  }

  async allocatedBytes(): Promise<number> {
    return (await stat(this.#path)).blocks * 512;
  }

  async remove(): Promise<void> {
    await this.#remove();
  }
}

function noSnapshots(): AenvError {
  return new AenvError('not_served', 'not served by disks of this kind: snapshots');
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw AenvError.from(error);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** qemu-img reports a full disk only in words. */
function asSpaceError(error: unknown): unknown {
  const full = error instanceof AenvError && /No space left on device/i.test(error.message);
  return full ? new AenvError('no_space', error.message, { cause: error }) : AenvError.from(error);
}
