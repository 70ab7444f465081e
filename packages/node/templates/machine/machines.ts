import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
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
  machine: Promise<string | undefined>;
  /** when it was asked for last */
  at: number;
}

/** What could not be made, for lack of space say, is tried again after so many `ms`, then after twice as many, and so on. */
const RETRY_MS = 60_000;
const RETRY_MAX_MS = 3_600_000;
/** Nobody has asked for a machine for so long when one is made that nobody waits for, if there is such a moment. */
const QUIET_MS = 2_000;
/** What nobody has asked for since is left to whoever asks for it next. */
const FORGET_MS = 86_400_000;

/**
 * The machines that sandboxes are continued from. They are made once on a host for each state of template and platform,
 * and taken over into this node's repository when they are first needed.
 */
export class Machines {
  readonly #options: MachinesOptions;
  readonly #ready = new Map<string, Asked>();
  /** templates that are to be captured later */
  readonly #later = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** Id of the snapshot; undefined while it cannot be made: then its sandboxes boot, and it is tried again in the background. */
  of(template: Template): Promise<string | undefined> {
    const key = this.#keyOf(template);
    const at = this.#options.clock.now();
    this.#askedAt = at;
    const known = this.#ready.get(key);
    if (known !== undefined) {
      known.at = at;
      return known.machine;
    }
    const machine = this.#attempt(template, key);
    const asked: Asked = { machine, at };
    this.#ready.set(key, asked);
    const later = machine.then((id) => (id === undefined ? this.#tryAgain(template, key, asked) : undefined));
    this.#later.add(later);
    void later.finally(() => this.#later.delete(later));
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
    this.#closing.abort(new AenvError('shutting_down', 'the daemon is shutting down'));
    await Promise.all([...[...this.#ready.values()].map(({ machine }) => machine), ...this.#later]);
  }

  async #attempt(template: Template, key: string): Promise<string | undefined> {
    const { log, signal } = this.#options;
    try {
      return await this.#make(template, key);
    } catch (error) {
      if (!signal.aborted) {
        log.warn('a template could not be captured; its sandboxes boot', { templateId: template.templateId, error });
      }
      return undefined;
    }
  }

  /** Until it is made or not wanted any more. Whoever asks meanwhile is not kept waiting. Never throws. */
  async #tryAgain(template: Template, key: string, asked: Asked): Promise<void> {
    const { clock, log } = this.#options;
    const signal = AbortSignal.any([this.#options.signal, this.#closing.signal]);
    const { templateId } = template;
    try {
      for (let waitMs = RETRY_MS; ; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
        await clock.sleep(waitMs, signal);
        const latest = clock.now() + waitMs;
        while (clock.now() < Math.min(this.#askedAt + QUIET_MS, latest)) await clock.sleep(QUIET_MS, signal);
        if (this.#ready.get(key) !== asked) return;
        if (clock.now() - asked.at >= FORGET_MS) {
          this.#ready.delete(key);
          return;
        }
        const id = await this.#attempt(template, key);
        if (id === undefined) continue;
        asked.machine = Promise.resolve(id);
        log.info('a template that could not be captured is captured now', { templateId });
        return;
      }
    } catch (error) {
      if (!signal.aborted) log.error('a template is not tried again', { templateId, error });
    }
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
