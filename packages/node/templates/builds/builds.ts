import { randomUUID } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses } from '../../assets/contract.ts';
import { randomName } from '../../sandboxes/identity.ts';
import type { TemplateLedger } from '../../store/template-ledger.ts';
import type { BuildableTemplate } from '../builtin/contract.ts';
import type { Template } from '../contract.ts';
import { layerFiles } from '../layers.ts';
import { registerBuiltin } from '../register.ts';
import { BuildLog } from './build-log.ts';
import type { BuildIds, BuildState, LogQuery, TemplateBuilds } from './contract.ts';

export interface BuildsOptions {
  readonly builtins: Readonly<Record<string, BuildableTemplate>>;
  readonly assetsDir: string;
  /** where converted layers of disks are kept */
  readonly layersDir: string;
  readonly envdVersion: string;
  /** makes what sandboxes of a template start from, so that the first one need not wait for it */
  readonly prepare: (template: Template) => Promise<unknown>;
  readonly ledger: TemplateLedger;
  readonly uses: Pick<AssetUses, 'during'>;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Build extends BuildIds {
  readonly name: string;
  readonly log: BuildLog;
  status: BuildState['status'];
  reason?: string;
  done: Promise<void>;
}

/** Builds that are over and still remembered, with their logs. */
const KEPT = 20;

/** Builds of this run of the node; what they made is in the ledger. */
export class Builds implements TemplateBuilds {
  readonly #options: BuildsOptions;
  readonly #builds = new Map<string, Build>();
  readonly #end = new AbortController();

  constructor(options: BuildsOptions) {
    this.#options = options;
  }

  startBuiltin(name: string): BuildIds {
    const { builtins, ledger, clock } = this.#options;
    const builtin = Object.hasOwn(builtins, name) ? builtins[name] : undefined;
    if (builtin === undefined) {
      throw new AenvError('template_not_found', `there is no built-in template '${name}'`, {
        remediation: `Built in are: ${Object.keys(builtins).join(', ')}.`,
      });
    }
    if (this.#end.signal.aborted) throw new AenvError('shutting_down', 'the daemon is shutting down');
    const running = [...this.#builds.values()].find((build) => build.name === name && build.status === 'building');
    if (running !== undefined) return { templateId: running.templateId, buildId: running.buildId };
    const ids = {
      templateId: ledger.byAlias(builtin.template.alias)?.templateId ?? randomName(20),
      buildId: randomUUID(),
    };
    const build: Build = { ...ids, name, log: new BuildLog(clock), status: 'building', done: Promise.resolve() };
    build.done = this.#run(build, builtin);
    this.#builds.set(build.buildId, build);
    this.#forgetOld();
    return ids;
  }

  state(templateId: string, buildId: string, { offset, limit, level }: LogQuery): BuildState {
    const build = this.#builds.get(buildId);
    if (build?.templateId === templateId) {
      const { status, reason } = build;
      const entries = build.log.read(offset, limit, level);
      return { templateId, buildId, status, entries, ...(reason === undefined ? {} : { reason }) };
    }
    // Of an earlier run of the node only what came of it is known.
    if (this.#options.ledger.get(templateId)?.buildId === buildId) {
      return { templateId, buildId, status: 'ready', entries: [] };
    }
    throw new AenvError('template_not_found', `build '${buildId}' of template '${templateId}' not found`, {
      remediation: 'Builds end with the daemon that runs them: start it again.',
    });
  }

  /** Stops builds that are under way and waits until they have let go of what they were doing. */
  async close(): Promise<void> {
    this.#end.abort(new AenvError('shutting_down', 'the node was told to end'));
    await Promise.all([...this.#builds.values()].map(({ done }) => done));
  }

  async #run(build: Build, builtin: BuildableTemplate): Promise<void> {
    const { ledger, uses, clock, log, assetsDir, layersDir, envdVersion, prepare } = this.#options;
    const { alias } = builtin.template;
    const started = clock.now();
    try {
      const template = await uses.during(async (claim) => {
        const made = await builtin.build({
          ...{ assetsDir, layersDir, signal: this.#end.signal },
          log: build.log.logger(log.child({ buildId: build.buildId })),
        });
        await claim(layerFiles(made.source));
        const ids = { templateId: build.templateId, buildId: build.buildId };
        return registerBuiltin({ ledger, clock, log }, builtin.template, { ...made, envdVersion }, ids);
      }, this.#end.signal);
      build.log.add('info', 'capturing a machine that sandboxes are continued from');
      await prepare(template);
      build.log.add('info', `${alias} is ready (${((clock.now() - started) / 1000).toFixed(1)} s)`);
      build.status = 'ready';
    } catch (error) {
      const { code, message, remediation, cause } = AenvError.from(error, 'the template could not be built');
      log.error('a template could not be built', { template: alias, buildId: build.buildId, code, message, cause });
      build.reason = remediation === undefined ? message : `${message} ${remediation}`;
      build.log.add('error', message);
      build.status = 'error';
    }
  }

  #forgetOld(): void {
    for (const { buildId, status } of this.#builds.values()) {
      if (this.#builds.size <= KEPT) return;
      if (status !== 'building') this.#builds.delete(buildId);
    }
  }
}
