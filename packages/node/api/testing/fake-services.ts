import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type {
  CreateSandbox,
  Fork,
  ForkOptions,
  ListPage,
  ListQuery,
  PauseOptions,
  ResumeOptions,
  SandboxService,
  SandboxView,
} from '../../sandboxes/contract.ts';
import { sandboxNotPaused, sandboxPaused } from '../../sandboxes/errors.ts';
import { newCheckpointId, randomName } from '../../sandboxes/identity.ts';
import { resolveOrigin, shapeOf } from '../../sandboxes/origin/origin.ts';
import { Catalog } from '../../snapshots/catalog/catalog.ts';
import { type Ledger, openLedger } from '../../store/ledger.ts';
import { type SandboxRecord, toView } from '../../store/sandbox-record.ts';
import type { SnapshotName, SnapshotRecord } from '../../store/snapshot-record.ts';
import { fullTemplate } from '../../store/testing/records.ts';
import type { BuildIds, BuildState, LogQuery, TemplateBuilds } from '../../templates/builds/contract.ts';
import type { Template, TemplateService } from '../../templates/contract.ts';
import { Templates } from '../../templates/service.ts';

/** Sandboxes that are rows of a real ledger and nothing more: no VM, no waiting. */
export class FakeSandboxes implements SandboxService {
  readonly created: CreateSandbox[] = [];
  readonly calls: (readonly [string, string, number])[] = [];
  /** thrown by the next call, once */
  failure: unknown;
  readonly #folder = mkdtempSync(join(tmpdir(), 'aenv-api-'));
  readonly ledger: Ledger = openLedger(this.#folder);
  /** the snapshots that are taken of them */
  readonly snapshots: Catalog = new Catalog({
    ledger: this.ledger,
    repository: { verify: async () => ({ checkedBytes: 4096, problems: [] }) },
    checkpoints: { remove: async (id) => void this.forgotten.push(id) },
    namespace: 'default',
    log: silentLogger,
  });
  /** ids of captured machines that were removed */
  readonly forgotten: string[] = [];
  readonly #templates: TemplateService;
  #clock = Date.UTC(2026, 0, 1);

  constructor(templates: TemplateService) {
    this.#templates = templates;
    for (const template of templates.list()) this.ledger.templates.put(template);
  }

  async create(options: CreateSandbox): Promise<SandboxView> {
    this.#fail();
    const template = shapeOf(
      resolveOrigin({ templates: this.#templates, snapshots: this.snapshots }, options.template),
    );
    this.created.push(options);
    this.#clock += 1000;
    const startedAt = new Date(this.#clock);
    const record: SandboxRecord = {
      sandboxId: `i${randomBytes(10).toString('hex')}`,
      state: 'running',
      templateId: template.templateId,
      ...(template.aliases[0] === undefined ? {} : { alias: template.aliases[0] }),
      createdAt: startedAt,
      startedAt,
      endAt: new Date(this.#clock + options.timeoutSeconds * 1000),
      cpuCount: template.cpuCount,
      memoryMb: template.memoryMb,
      diskSizeMb: template.diskSizeMb,
      metadata: options.metadata,
      envVars: options.envVars,
      secure: options.secure,
      envdVersion: template.envdVersion,
      ...(options.secure ? { envdAccessToken: 'envd-token' } : {}),
      ...(options.network.allowPublicTraffic ? {} : { trafficAccessToken: 'traffic-token' }),
      allowInternetAccess: options.allowInternetAccess,
      network: options.network,
      onTimeout: options.onTimeout,
      autoResume: options.autoResume,
      pauseMemory: options.pauseMemory,
      drives: (options.drives ?? []).map(({ drive }) => drive),
      start: template.start,
      hostSecret: 'host-secret',
    };
    this.ledger.sandboxes.insert(record);
    return toView(record);
  }

  get(sandboxId: string): SandboxView {
    this.#fail();
    const record = this.ledger.sandboxes.get(sandboxId);
    if (record?.state === 'running' || record?.state === 'paused') return toView(record);
    throw new AenvError('sandbox_not_found', `sandbox ${sandboxId} not found`);
  }

  list(query: ListQuery): ListPage {
    const page = this.ledger.sandboxes.list(query);
    return { ...page, items: page.items.map(toView) };
  }

  async connect(sandboxId: string, timeoutSeconds: number) {
    this.calls.push(['connect', sandboxId, timeoutSeconds]);
    const resumed = this.get(sandboxId).state === 'paused';
    if (resumed) this.ledger.sandboxes.update(sandboxId, 'paused', { state: 'running' });
    return { view: this.get(sandboxId), resumed };
  }

  async pause(sandboxId: string, { memory }: PauseOptions): Promise<void> {
    if (this.get(sandboxId).state === 'paused') throw sandboxPaused(sandboxId);
    this.calls.push(['pause', sandboxId, Number(memory)]);
    this.ledger.sandboxes.update(sandboxId, 'running', { state: 'paused' });
  }

  async resume(sandboxId: string, timeoutSeconds: number, options?: ResumeOptions): Promise<SandboxView> {
    const { state, onTimeout } = this.get(sandboxId);
    if (state !== 'paused') throw sandboxNotPaused(sandboxId, state);
    this.calls.push(['resume', sandboxId, timeoutSeconds]);
    const change = { state: 'running', onTimeout: options?.onTimeout ?? onTimeout } as const;
    this.ledger.sandboxes.update(sandboxId, 'paused', change);
    return this.get(sandboxId);
  }

  /** The second child of several fails. */
  async fork(sandboxId: string, { count, timeoutSeconds }: ForkOptions): Promise<readonly Fork[]> {
    const view = this.get(sandboxId);
    if (view.state === 'paused') throw sandboxPaused(sandboxId);
    this.calls.push(['fork', sandboxId, timeoutSeconds]);
    const child = (at: number): Fork =>
      at === 1
        ? { error: new AenvError('capacity_exhausted', 'no room') }
        : { view: { ...view, sandboxId: `${sandboxId}f${at}` } };
    return Array.from({ length: count }, (_, at) => child(at));
  }

  async snapshot(sandboxId: string, name?: SnapshotName): Promise<SnapshotRecord> {
    const { state, cpuCount, memoryMb, diskSizeMb, envdVersion } = this.get(sandboxId);
    if (state === 'paused') throw sandboxPaused(sandboxId);
    if (name !== undefined) this.snapshots.requireFree(name);
    this.#clock += 1000;
    const snapshot: SnapshotRecord = {
      templateId: randomName(20),
      checkpointId: newCheckpointId(),
      ...(name === undefined ? {} : { name }),
      ...{ sandboxId, createdAt: new Date(this.#clock), cpuCount, memoryMb, diskSizeMb, envdVersion },
      start: { envVars: {}, user: 'user', workdir: '/home/user' },
      drives: [],
    };
    this.snapshots.add(snapshot);
    return snapshot;
  }

  async setTimeout(sandboxId: string, timeoutSeconds: number): Promise<void> {
    this.get(sandboxId);
    this.calls.push(['setTimeout', sandboxId, timeoutSeconds]);
  }

  async refresh(sandboxId: string, seconds: number): Promise<void> {
    this.get(sandboxId);
    this.calls.push(['refresh', sandboxId, seconds]);
  }

  async kill(sandboxId: string): Promise<void> {
    this.get(sandboxId);
    const change = { state: 'ended', endReason: 'killed', endedAt: new Date(this.#clock) } as const;
    this.ledger.sandboxes.update(sandboxId, ['running', 'paused'], change);
  }

  async close(): Promise<void> {
    this.ledger.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #fail(): void {
    const failure = this.failure;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

/** The real service, over a ledger of its own. */
export class FakeTemplates extends Templates {
  readonly #folder: string;
  readonly ledger: Ledger;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'aenv-api-'));
    const ledger = openLedger(folder);
    super({ ledger: ledger.templates, clock: systemClock, namespace: 'default' });
    this.#folder = folder;
    this.ledger = ledger;
    ledger.templates.put(fullTemplate());
  }

  get templates(): readonly Template[] {
    return this.list();
  }

  /** Instead of those that are there. */
  set templates(templates: readonly Template[]) {
    for (const { templateId } of this.list()) this.ledger.templates.remove(templateId);
    for (const template of templates) this.ledger.templates.put(template);
  }

  close(): void {
    this.ledger.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** One build of every name, in the state that a test sets. */
export class FakeBuilds implements TemplateBuilds {
  readonly started: string[] = [];
  current: BuildState = { templateId: 't1', buildId: 'b1', status: 'building', entries: [] };
  readonly queries: LogQuery[] = [];

  startBuiltin(name: string): BuildIds {
    if (name === 'unknown') throw new AenvError('template_not_found', `there is no built-in template '${name}'`);
    this.started.push(name);
    return this.current;
  }

  state(templateId: string, buildId: string, query: LogQuery): BuildState {
    this.queries.push(query);
    if (templateId === this.current.templateId && buildId === this.current.buildId) return this.current;
    throw new AenvError('template_not_found', `build '${buildId}' not found`);
  }
}
