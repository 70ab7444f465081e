import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { assetFolder } from '@aenv/images/cache/asset-folder.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Template } from '../contract.ts';
import { diskLayers } from '../layers.ts';
import type { BuildMachine } from './build.ts';

export interface MachinesOptions {
  /** folder of captured machines, shared by all nodes of this host */
  readonly folder: string;
  readonly build: BuildMachine;
  readonly repository: { adopt(root: string, id: string): Promise<unknown> };
  /** what else than the template decides what the machine is: kernel, tools, VMM, processor */
  readonly platform: string;
  readonly log: Logger;
  /** ends what is being built */
  readonly signal: AbortSignal;
}

/**
 * The machines that sandboxes are continued from. They are made once on a host for each state of template and platform,
 * and taken over into this node's repository when they are first needed.
 */
export class Machines {
  readonly #options: MachinesOptions;
  readonly #ready = new Map<string, Promise<string | undefined>>();

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** Id of the snapshot; undefined when it cannot be made: then its sandboxes boot. */
  of(template: Template): Promise<string | undefined> {
    const key = this.#keyOf(template);
    let machine = this.#ready.get(key);
    if (machine === undefined) {
      machine = this.#make(template, key).catch((error: unknown) => {
        const { log, signal } = this.#options;
        if (!signal.aborted) {
          log.warn('a template could not be captured; its sandboxes boot', { templateId: template.templateId, error });
        }
        return undefined;
      });
      this.#ready.set(key, machine);
    }
    return machine;
  }

  /** Id that the snapshot has, or will have. */
  idOf(template: Template): string {
    return nameOf(this.#keyOf(template));
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await Promise.all(this.#ready.values());
  }

  async #make(template: Template, key: string): Promise<string> {
    const { folder, build, repository, signal } = this.#options;
    const id = nameOf(key);
    const path = await assetFolder(folder, key, (result) =>
      build(template, id, { folder: result, target: join(folder, key) }, signal),
    );
    await repository.adopt(path, id);
    return id;
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
const FORMAT = 2;
