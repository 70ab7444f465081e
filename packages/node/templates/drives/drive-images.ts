import { randomUUID } from 'node:crypto';
import type { DiskOrigin } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { attachedDriveLabel } from '@aenv/contracts/guest/layout.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses } from '../../assets/contract.ts';
import type { DriveStart } from '../../sandboxes/drives/contract.ts';
import { diskLayers } from '../layers.ts';
import { fromImage } from '../pull/from-image.ts';
import type { Pull } from '../pull/pull.ts';
import type { DriveImages, NewDrive } from './contract.ts';

export interface DriveImagesOptions {
  readonly pull: Pull;
  readonly uses: Pick<AssetUses, 'during'>;
  readonly log: Logger;
}

/** Sandboxes whose drives are being prepared at the same time; each pulls one image at a time. */
const MAX_AT_ONCE = 4;
const MIB = 1024 * 1024;

/** Pulls the images of drives as those of templates are pulled, and keeps their layers beside those. */
export class NodeDriveImages implements DriveImages {
  readonly #options: DriveImagesOptions;
  readonly #end = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: DriveImagesOptions) {
    this.#options = options;
  }

  async use<T>(drives: readonly NewDrive[], work: (starts: readonly DriveStart[]) => Promise<T>): Promise<T> {
    if (drives.length === 0) return await work([]);
    return await this.#options.uses.during(async (claim) => {
      const starts = await this.#admitted(drives);
      await claim(starts.flatMap(({ disk }) => filesOf(disk)));
      return await work(starts);
    }, this.#end.signal);
  }

  /** Stops what is under way and waits for its end. */
  async close(): Promise<void> {
    this.#end.abort(new AenvError('shutting_down', 'the daemon is shutting down'));
    await Promise.allSettled(this.#running);
  }

  async #admitted(drives: readonly NewDrive[]): Promise<readonly DriveStart[]> {
    if (this.#running.size >= MAX_AT_ONCE) {
      throw new AenvError('capacity_exhausted', `drives of ${MAX_AT_ONCE} sandboxes are being prepared at the moment`, {
        remediation: 'Wait until those of one are there.',
      });
    }
    const running = this.#prepareAll(drives);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #prepareAll(drives: readonly NewDrive[]): Promise<readonly DriveStart[]> {
    const starts: DriveStart[] = [];
    for (const [at, drive] of drives.entries()) {
      try {
        starts.push(await this.#prepare(drive, attachedDriveLabel(at + 1)));
      } catch (error) {
        const { code, message, remediation, details } = AenvError.from(error);
        throw new AenvError(code, `drive '${drive.driveId}': ${message}`, { remediation, details, cause: error });
      }
    }
    return starts;
  }

  async #prepare({ image, sizeMb, ...drive }: NewDrive, driveLabel: string): Promise<DriveStart> {
    const { pull, log } = this.#options;
    const pulled = await pull({
      ...{ image, driveLabel, buildId: randomUUID(), log, signal: this.#end.signal, onProgress: () => {} },
      sizeBytes: sizeMb === undefined ? undefined : sizeMb * MIB,
    });
    const { source, diskSizeMb } = fromImage(pulled, {});
    return {
      drive: { ...drive, label: driveLabel, sizeMb: diskSizeMb },
      disk: { kind: 'layers', layers: diskLayers(source) },
    };
  }
}

function filesOf(disk: DiskOrigin): readonly string[] {
  return disk.kind === 'layers' ? disk.layers.filter((layer) => typeof layer === 'string') : [];
}
