import { randomUUID } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses, Claim } from '../../assets/contract.ts';
import { randomName } from '../../sandboxes/identity.ts';
import type { BuildRecord } from '../../store/build-ledger.ts';
import type { Ledger } from '../../store/ledger.ts';
import { BuildLog } from '../builds/build-log.ts';
import type { BuildIds, BuildState, LogQuery, TemplateBuilds } from '../builds/contract.ts';
import type { Template, TemplateService } from '../contract.ts';
import { layerFiles } from '../layers.ts';
import { coldId } from './cold-templates.ts';
import type { ImageBuild, ImageTemplates, NewTemplate } from './contract.ts';
import { fromImage, type ImageParts } from './from-image.ts';
import { describeProgress, megabytes } from './progress.ts';
import type { Pull } from './pull.ts';

export interface ImageTemplatesOptions {
  readonly ledger: Pick<Ledger, 'templates' | 'builds' | 'sandboxes' | 'snapshots' | 'transaction'>;
  readonly templates: Pick<TemplateService, 'find'>;
  /** builds of the templates that the product brings */
  readonly builtin: TemplateBuilds;
  /** names of those templates */
  readonly reserved: readonly string[];
  readonly pull: Pull;
  readonly uses: Pick<AssetUses, 'during'>;
  readonly envdVersion: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Builds at the same time; each may have gigabytes on their way. */
const MAX_RUNNING = 4;
/** Builds whose log entries are still in memory. */
const KEPT_LOGS = 20;
const MIB = 1024 * 1024;
const INTERRUPTED = 'the daemon was stopped while the template was being built; build it again';

/** Templates made of images: the ledger knows the builds, this process runs them. */
export class NodeImageTemplates implements ImageTemplates {
  readonly #options: ImageTemplatesOptions;
  readonly #logs = new Map<string, BuildLog>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #end = new AbortController();
  /** pulls for sandboxes that boot an image */
  readonly #cold = new Set<Promise<unknown>>();

  /** Builds that an earlier run of the node has left are marked as failed. */
  constructor(options: ImageTemplatesOptions) {
    this.#options = options;
    const { ledger, clock, log } = options;
    const failed = ledger.builds.failUnfinished(new Date(clock.now()), INTERRUPTED);
    if (failed > 0) log.warn('builds of templates were interrupted', { builds: failed });
  }

  startBuiltin(name: string): BuildIds {
    return this.#options.builtin.startBuiltin(name);
  }

  create(wanted: NewTemplate): BuildIds {
    const { ledger, clock } = this.#options;
    this.#refuseReserved(wanted.alias);
    // Templates are found first: it would hide the snapshot.
    if (ledger.snapshots.list({ name: wanted.alias, limit: 1 }).items.length > 0) {
      throw new AenvError('invalid_request', `'${wanted.alias}' is the name of a snapshot`, {
        remediation: 'Choose another name, or remove the snapshot.',
      });
    }
    const templateId =
      ledger.templates.byAlias(wanted.alias)?.templateId ??
      ledger.builds.unfinishedOf(wanted.alias)?.templateId ??
      randomName(20);
    const ids = { templateId, buildId: randomUUID() };
    ledger.builds.insert({ ...ids, status: 'waiting', wanted, createdAt: new Date(clock.now()) });
    return ids;
  }

  start(ids: BuildIds, build: ImageBuild): void {
    const { ledger } = this.#options;
    const record = this.#find(ids);
    if (record === undefined) throw notFound(ids);
    if (record.status !== 'waiting') {
      throw new AenvError('build_not_waiting', `build '${ids.buildId}' was started before: it is ${record.status}`);
    }
    const same = ledger.builds.building().find(({ templateId }) => templateId === ids.templateId);
    if (same !== undefined) throw building(record.wanted.alias, same.buildId);
    this.#admit();
    ledger.builds.begin(ids.buildId);
    const log = new BuildLog(this.#options.clock);
    this.#logs.set(ids.buildId, log);
    this.#forgetLogs();
    const running = this.#run(record, build, log).finally(() => this.#running.delete(ids.buildId));
    this.#running.set(ids.buildId, running);
  }

  state(templateId: string, buildId: string, query: LogQuery): BuildState {
    const ids = { templateId, buildId };
    const record = this.#find(ids);
    if (record === undefined) return this.#options.builtin.state(templateId, buildId, query);
    const entries = this.#logs.get(buildId)?.read(query.offset, query.limit, query.level) ?? [];
    const { status, reason } = record;
    return { ...ids, status, entries, ...(reason === undefined ? {} : { reason }) };
  }

  async prepareCold(image: string, sizes: Omit<NewTemplate, 'alias'>): Promise<string> {
    this.#admit();
    const pulling = this.#options.uses.during((claim) => this.#pullCold(image, sizes, claim), this.#end.signal);
    this.#cold.add(pulling);
    try {
      return await pulling;
    } finally {
      this.#cold.delete(pulling);
    }
  }

  forget(templateId: string): boolean {
    const { ledger } = this.#options;
    if (ledger.templates.get(templateId) !== undefined) return false;
    const same = ledger.builds.building().find((build) => build.templateId === templateId);
    if (same !== undefined) throw building(templateId, same.buildId);
    return ledger.builds.removeOf(templateId) > 0;
  }

  remove(reference: string): void {
    const { ledger, templates, log } = this.#options;
    const { templateId, aliases } = templates.find(reference);
    for (const alias of aliases) this.#refuseReserved(alias);
    const same = ledger.builds.building().find((build) => build.templateId === templateId);
    if (same !== undefined) throw building(reference, same.buildId);
    const users = ledger.sandboxes.live().filter((sandbox) => sandbox.templateId === templateId);
    if (users.length > 0) {
      const ids = users.map(({ sandboxId }) => sandboxId);
      throw new AenvError('template_in_use', `template '${reference}' is used by ${shorten(ids)}`, {
        details: { sandboxes: ids },
      });
    }
    ledger.transaction(() => {
      ledger.templates.remove(templateId);
      ledger.builds.removeOf(templateId);
    });
    log.info('template removed', { templateId, aliases });
  }

  /** Stops what is under way and waits until nothing of it is left running. */
  async close(): Promise<void> {
    this.#end.abort(new AenvError('shutting_down', INTERRUPTED));
    await Promise.all(this.#running.values());
    await Promise.allSettled(this.#cold);
  }

  async #run(record: BuildRecord, build: ImageBuild, lines: BuildLog): Promise<void> {
    const { ledger, clock, pull, uses, log } = this.#options;
    const { buildId, templateId, wanted } = record;
    const started = clock.now();
    const { signal, stop } = limited(this.#end.signal, build.timeoutMs);
    try {
      await uses.during(async (claim) => {
        const pulled = await pull({
          image: build.image,
          buildId,
          credentials: build.credentials,
          sizeBytes: bytesOf(wanted.diskSizeMb),
          onProgress: describeProgress(clock, (line) => lines.add('info', line)),
          log: log.child({ buildId }),
          signal,
        });
        const bytes = pulled.layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
        const far = pulled.layers.reduce((sum, { kind, sizeBytes }) => sum + (kind === 'remote' ? sizeBytes : 0), 0);
        const note = far === 0 ? '' : `, of which ${megabytes(far)} are read on demand`;
        lines.add('info', `${pulled.name}: ${pulled.layers.length} layers, ${megabytes(bytes)}${note}`);
        const parts = fromImage(pulled, build);
        await claim(layerFiles(parts.source));
        signal.throwIfAborted();
        this.#register(record, parts);
      }, signal);
      lines.add('info', `${wanted.alias} is ready (${((clock.now() - started) / 1000).toFixed(1)} s)`);
    } catch (error) {
      const { code, message, remediation, cause } = AenvError.from(error, 'the template could not be built');
      log.warn('a template could not be built', { template: wanted.alias, templateId, buildId, code, message, cause });
      lines.add('error', message);
      const reason = remediation === undefined ? message : `${message}. ${remediation}`;
      ledger.builds.finish(buildId, 'error', new Date(clock.now()), reason);
    } finally {
      stop();
    }
  }

  async #pullCold(image: string, sizes: Omit<NewTemplate, 'alias'>, claim: Claim): Promise<string> {
    const { ledger, pull, log } = this.#options;
    const buildId = randomUUID();
    const pulled = await pull({
      ...{ image, buildId, log, signal: this.#end.signal, onProgress: () => {} },
      sizeBytes: bytesOf(sizes.diskSizeMb),
    });
    const parts = fromImage(pulled, {});
    const templateId = coldId({ ...parts, ...sizes, diskSizeMb: parts.diskSizeMb });
    await claim(layerFiles(parts.source));
    if (ledger.templates.get(templateId) === undefined) {
      ledger.templates.put(this.#templateOf({ templateId, buildId }, [], sizes, parts));
    }
    return templateId;
  }

  /** Template and end of the build in one step: all that they refer to is on stable storage. */
  #register({ templateId, buildId, wanted }: BuildRecord, parts: ImageParts): void {
    const { ledger, clock, log } = this.#options;
    const template = this.#templateOf({ templateId, buildId }, [wanted.alias], wanted, parts);
    ledger.transaction(() => {
      ledger.templates.put(template, wanted.tags);
      ledger.builds.finish(buildId, 'ready', new Date(clock.now()));
    });
    log.info('template registered', { template: wanted.alias, templateId, buildId });
  }

  /** What it was before keeps its names, counts and age. */
  #templateOf(
    ids: BuildIds,
    aliases: readonly string[],
    { cpuCount, memoryMb }: Omit<NewTemplate, 'alias'>,
    parts: ImageParts,
  ): Template {
    const { ledger, clock, envdVersion } = this.#options;
    const now = new Date(clock.now());
    const before = ledger.templates.get(ids.templateId);
    return {
      ...{ ...ids, ...parts, envdVersion, cpuCount, memoryMb },
      aliases: [...new Set([...(before?.aliases ?? []), ...aliases])],
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      lastSpawnedAt: before?.lastSpawnedAt ?? null,
      spawnCount: before?.spawnCount ?? 0,
    };
  }

  #admit(): void {
    if (this.#end.signal.aborted) throw new AenvError('shutting_down', 'the daemon is shutting down');
    const busy = this.#running.size + this.#cold.size;
    if (busy < MAX_RUNNING) return;
    throw new AenvError('capacity_exhausted', `${busy} images are being pulled at the moment`, {
      remediation: 'Wait until one of them is done.',
    });
  }

  #find({ templateId, buildId }: BuildIds): BuildRecord | undefined {
    const record = this.#options.ledger.builds.get(buildId);
    return record?.templateId === templateId ? record : undefined;
  }

  #refuseReserved(alias: string): void {
    if (!this.#options.reserved.includes(alias)) return;
    throw new AenvError('invalid_request', `'${alias}' is a template that the product brings`, {
      remediation: 'Choose another name.',
    });
  }

  #forgetLogs(): void {
    for (const buildId of this.#logs.keys()) {
      if (this.#logs.size <= KEPT_LOGS) return;
      if (!this.#running.has(buildId)) this.#logs.delete(buildId);
    }
  }
}

function bytesOf(sizeMb: number | undefined): number | undefined {
  return sizeMb === undefined ? undefined : sizeMb * MIB;
}

/** A signal that ends with another one, or after a time. */
function limited(end: AbortSignal, timeoutMs: number | undefined): { signal: AbortSignal; stop: () => void } {
  if (timeoutMs === undefined) return { signal: end, stop: () => {} };
  const limit = new AbortController();
  const timer = setTimeout(() => {
    limit.abort(new AenvError('request_timeout', `the build took longer than ${timeoutMs / 1000} s`));
  }, timeoutMs);
  return { signal: AbortSignal.any([end, limit.signal]), stop: () => clearTimeout(timer) };
}

function building(name: string, buildId: string): AenvError {
  return new AenvError('template_building', `template '${name}' is being built: build '${buildId}'`);
}

function notFound({ templateId, buildId }: BuildIds): AenvError {
  return new AenvError('template_not_found', `build '${buildId}' of template '${templateId}' not found`);
}

/** Enough ids to act on. */
function shorten(ids: readonly string[]): string {
  const shown = ids.slice(0, 10).join(', ');
  return ids.length > 10 ? `${shown} and ${ids.length - 10} more` : shown;
}
