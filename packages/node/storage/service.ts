import { realpath } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { type CollectReport, collectAssets } from '../assets/collect/collect.ts';
import type { AssetEntry, AssetUses } from '../assets/contract.ts';
import { assetPlaces } from '../assets/places.ts';
import { readRoots } from '../assets/roots/read-roots.ts';
import type { GcReport } from '../snapshots/contract.ts';
import type { Template } from '../templates/contract.ts';
import type { Collected, ImageInfo, StorageService } from './contract.ts';
import { findImage } from './images/find-image.ts';
import { type ListedImage, listImages } from './images/image-list.ts';

export interface StorageOptions {
  readonly assetsDir: string;
  readonly home: string;
  readonly uses: Pick<AssetUses, 'refresh'>;
  /** how long assets stay that nobody needs, in `ms` */
  readonly keepMs: number;
  /** how long who uses assets is waited for, in `ms` */
  readonly waitMs: number;
  readonly templates: () => readonly Template[];
  /** Removes what only this node can; each gives how many. */
  readonly own: OwnCollections;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface OwnCollections {
  /** templates without a name that nobody has used since then, `ms` since the epoch */
  unnamedTemplates(before: number): number;
  /** captured machines that this home took over for other templates than it has */
  machines(): Promise<number>;
  /** memory that snapshots have shared */
  snapshots(): Promise<GcReport>;
}

/** The storage of a node, one collection at a time. */
export class NodeStorage implements StorageService {
  readonly #options: StorageOptions;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: StorageOptions) {
    this.#options = options;
  }

  async images(): Promise<readonly ImageInfo[]> {
    const images = await this.#list();
    return images.map(({ folders: _, record: __, ...info }) => info);
  }

  removeImage(reference: string): Promise<Collected> {
    return this.#alone(async () => {
      const found = findImage(await this.#list(), reference);
      const users = new Set(found.flatMap(({ usedBy }) => usedBy));
      if (users.size > 0) {
        throw new AenvError('image_in_use', `image '${reference}' is used by ${shorten([...users])}`, {
          details: { usedBy: [...users] },
        });
      }
      const victims = new Set(found.flatMap(({ folders, record }) => [...folders, ...(record ? [record.path] : [])]));
      return this.#collect(({ path }) => !victims.has(path));
    });
  }

  collectImages(): Promise<Collected> {
    return this.#alone(() => this.#collect(({ kind }) => kind !== 'image' && kind !== 'layer'));
  }

  collect({ all = false } = {}): Promise<Collected> {
    return this.#alone(async () => {
      const { keepMs, own, clock } = this.#options;
      const before = all ? Number.POSITIVE_INFINITY : clock.now() - keepMs;
      const templates = own.unnamedTemplates(before);
      const machines = await own.machines();
      const snapshots = await own.snapshots();
      return { ...(await this.#collect(({ usedAt }) => usedAt >= before)), templates, machines, snapshots };
    });
  }

  async #collect(isKept: (entry: AssetEntry) => boolean): Promise<CollectReport> {
    const { assetsDir, uses, keepMs, waitMs, clock, log } = this.#options;
    await uses.refresh();
    const report = await collectAssets({ assetsDir, isKept, keepHomesMs: keepMs, waitMs, clock });
    if (report.blockedBy.length > 0) {
      const files = shorten(report.blockedBy);
      throw new AenvError('storage_unknown', `nothing is removed, since these cannot be read: ${files}`);
    }
    const { freedBytes, removed } = report;
    if (removed.length > 0) log.info('assets that nobody needs were removed', { assets: removed.length, freedBytes });
    return report;
  }

  async #list(): Promise<readonly ListedImage[]> {
    const { assetsDir, home, templates } = this.#options;
    const places = assetPlaces(await realpath(assetsDir));
    return listImages(places, templates(), await readRoots(places), await realpath(home));
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => {});
    return turn;
  }
}

function shorten(all: readonly string[]): string {
  const shown = all.slice(0, 10).join(', ');
  return all.length > 10 ? `${shown} and ${all.length - 10} more` : shown;
}
