import type { Template, TemplateService } from '../../templates/contract.ts';
import { diskLayers } from '../../templates/layers.ts';
import type { CreateSandbox, SandboxView } from '../contract.ts';
import type { DriveStart } from '../drives/contract.ts';
import type { Ending } from '../ending.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../faults.ts';
import { serviceOf } from '../guest-service/service-of.ts';
import type { StartPoint } from '../launch/launch.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import { firstInit } from '../origin/first-init.ts';
import type { Origin } from '../origin/origin.ts';
import type { Starting } from '../starting/starting.ts';

export interface CreatingOptions {
  readonly starting: Starting;
  readonly ending: Ending;
  readonly templates: Pick<TemplateService, 'recordSpawn'>;
  /** what a sandbox of a template starts from */
  readonly startPointOf: (template: Template) => Promise<StartPoint>;
  readonly faults?: LifecycleFaults;
}

/** How a sandbox that has its row begins. One that does not come up is released. */
export class Creating {
  readonly #options: CreatingOptions;

  constructor(options: CreatingOptions) {
    this.#options = options;
  }

  async create(live: LiveSandbox, origin: Origin, how: Pick<CreateSandbox, 'cold' | 'drives'>): Promise<SandboxView> {
    const { starting, ending, templates, faults = noLifecycleFaults } = this.#options;
    try {
      await faults.hit('create.row_written');
      const beginning = await this.#beginning(live, origin, how);
      const view = await starting.start(live, { was: 'creating', init: firstInit(live.record), ...beginning });
      if (origin.kind === 'template') templates.recordSpawn(origin.template.templateId);
      return view;
    } catch (error) {
      await ending.release(live, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  /** A guest that comes out of a snapshot goes on with what it did; nothing is begun in it. */
  async #beginning(
    { record }: LiveSandbox,
    origin: Origin,
    { cold, drives = [] }: Pick<CreateSandbox, 'cold' | 'drives'>,
  ) {
    if (origin.kind === 'snapshot') {
      const { checkpointId: id, sandboxId: parent } = origin.snapshot;
      return { from: { kind: 'checkpoint', id, event: 'create' }, parent } as const;
    }
    const { template } = origin;
    const from = cold === true ? diskOf(template, drives) : await this.#options.startPointOf(template);
    return { from, ...serviceOf(record, record.envdAccessToken) };
  }
}

function diskOf({ source }: Template, drives: readonly DriveStart[]): StartPoint {
  return { kind: 'disk', disk: { kind: 'layers', layers: diskLayers(source) }, drives };
}
