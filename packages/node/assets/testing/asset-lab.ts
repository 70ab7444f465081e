import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { type CollectOptions, type CollectReport, collectAssets } from '../collect/collect.ts';
import type { AssetEntry } from '../contract.ts';
import { HomeUses } from '../homes/home-uses.ts';
import { type AssetPlaces, assetPlaces } from '../places.ts';

const HOUR = 3_600_000;

/** A folder of assets and a home that uses it, both without anything. */
export class AssetLab implements AsyncDisposable {
  readonly folder: string;
  readonly home: string;
  readonly places: AssetPlaces;
  /** what the ledger of the home refers to */
  readonly referred: string[] = [];
  readonly uses: HomeUses;

  private constructor(folder: string) {
    this.folder = folder;
    this.home = join(folder, 'home');
    this.places = assetPlaces(join(folder, 'assets'));
    this.uses = new HomeUses({
      assetsDir: this.places.root,
      home: this.home,
      referred: () => this.referred,
      clock: systemClock,
    });
  }

  static async open(): Promise<AssetLab> {
    const lab = new AssetLab(await realpath(await mkdtemp(join(tmpdir(), 'aenv-assets-'))));
    await mkdir(lab.home);
    await mkdir(lab.places.root);
    return lab;
  }

  /** A layer that was used hours ago. @returns path of its file */
  async layer(name: string, hours = 100): Promise<string> {
    const file = join(this.places.layers, keyOf(name), 'overlaybd.commit');
    await this.file(file, name, hours);
    return file;
  }

  /** @param kind `kernel`, `tools`, … */
  async guest(kind: string, name: string, hours = 100): Promise<string> {
    const file = join(this.places.guest, `${kind}-${keyOf(name)}`, kind);
    await this.file(file, name, hours);
    return file;
  }

  /** A file in a folder, which counts as used hours ago. */
  async file(path: string, content: string, hours = 100): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content.padEnd(4096));
    await this.age(dirname(path), hours);
  }

  async age(path: string, hours: number): Promise<void> {
    const then = new Date(Date.now() - hours * HOUR);
    await utimes(path, then, then);
  }

  /** What nobody has used for a day is removed. */
  collect(options: Partial<CollectOptions> = {}): Promise<CollectReport> {
    const { root } = this.places;
    const isKept = ({ usedAt }: AssetEntry) => usedAt > Date.now() - 24 * HOUR;
    return collectAssets({
      assetsDir: root,
      isKept,
      keepHomesMs: 24 * HOUR,
      waitMs: 0,
      clock: systemClock,
      ...options,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

export function keyOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

export async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
