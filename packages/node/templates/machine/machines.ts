import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { assetFolder } from '@aenv/images/cache/asset-folder.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses } from '../../assets/contract.ts';
import type { LifecycleFaults } from '../../sandboxes/faults.ts';
import type { SnapshotManifest } from '../../snapshots/contract.ts';
import type { Template } from '../contract.ts';
import { diskLayers } from '../layers.ts';
import type { BuildMachine } from './build.ts';

export interface MachinesOptions {
  /** folder of captured machines, shared by all nodes of this host */
  readonly folder: string;
  readonly build: BuildMachine;
  readonly repository: {
    adopt(root: string, id: string): Promise<unknown>;
    remove(id: string): Promise<void>;
    list(): Promise<readonly Pick<SnapshotManifest, 'id' | 'kind'>[]>;
  };
  readonly uses: Pick<AssetUses, 'during'>;
  readonly faults?: LifecycleFaults;
  readonly clock: Clock;
  /** what else than the template decides what the machine is: kernel, tools, VMM, processor */
  readonly platform: string;
  readonly log: Logger;
  /** ends what is being built */
  readonly signal: AbortSignal;
}

interface Asked {
  readonly machine: Promise<string | undefined>;
  /** when it was asked for last */
  readonly at: number;
}

/**
 * The machines that sandboxes are continued from. They are made once on a host for each state of template and platform,
 * and taken over into this node's repository when they are first needed.
 */
export class Machines {
  readonly #options: MachinesOptions;
  readonly #ready = new Map<string, Asked>();

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** Id of the snapshot; undefined when it cannot be made: then its sandboxes boot. */
  of(template: Template): Promise<string | undefined> {
    const key = this.#keyOf(template);
    const at = this.#options.clock.now();
    const machine =
      this.#ready.get(key)?.machine ??
      this.#make(template, key).catch((error: unknown) => {
        const { log, signal } = this.#options;
        if (!signal.aborted) {
          log.warn('a template could not be captured; its sandboxes boot', { templateId: template.templateId, error });
        }
        return undefined;
      });
    this.#ready.set(key, { machine, at });
    return machine;
  }

  /** Id that the snapshot has, or will have. */
  idOf(template: Template): string {
    return nameOf(this.#keyOf(template));
  }

  /**
   * Removes what this node has of the machines of other templates than these: of those that are no more, and of earlier
   * builds. Not what was asked for since a moment: a sandbox may be about to start from it.
   * @returns how many
   */
  async keepOnly(templates: readonly Template[], since: number): Promise<number> {
    const { repository } = this.#options;
    const needed = new Set(templates.map((template) => this.idOf(template)));
    for (const [key, { at }] of this.#ready) {
      if (at >= since) needed.add(nameOf(key));
      else if (!needed.has(nameOf(key))) this.#ready.delete(key);
    }
    const unneeded = (await repository.list()).filter(({ id, kind }) => kind === 'template' && !needed.has(id));
    for (const { id } of unneeded) await repository.remove(id);
    return unneeded.length;
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await Promise.all([...this.#ready.values()].map(({ machine }) => machine));
  }

  #make(template: Template, key: string): Promise<string> {
    const { folder, build, repository, uses, signal } = this.#options;
    const id = nameOf(key);
    return uses.during(async () => {
      const path = await assetFolder(folder, key, (result) =>
        build(template, id, { folder: result, target: join(folder, key) }, signal),
      );
      await this.#options.faults?.hit('template.published');
      await repository.adopt(path, id);
      return id;
    }, signal);
  }

  #keyOf({ source, cpuCount, memoryMb, diskSizeMb, start }: Template): string {
    const inputs = [
      FORMAT,
      this.#options.platform,
      diskLayers(source),
      cpuCount,
      memoryMb,
      diskSizeMb,
      start.user,
      start.workdir,
      Object.entries(start.envVars).sort(),
      Object.entries(start.startCommand ?? {}).sort(),
      Object.entries(start.ready ?? {}).sort(),
    ];
    return createHash('sha256').update(JSON.stringify(inputs)).digest('hex');
  }
}

const nameOf = (key: string): string => `m${key.slice(0, 32)}`;

/** Raise it when the same inputs would give another machine. */
const FORMAT = 3;
