import { CliError } from '../output/cli-error.ts';
import type { Settings } from './settings.ts';

/** A sandbox as the API lists it; the fields that the CLI shows or needs. */
export interface SandboxInfo {
  readonly sandboxID: string;
  readonly templateID: string;
  readonly alias?: string;
  readonly state?: string;
  readonly startedAt?: string;
  readonly endAt?: string;
  readonly cpuCount?: number;
  readonly memoryMB?: number;
  readonly diskSizeMB?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly envdAccessToken?: string;
}

/** A child of a fork, or why it did not start. */
export interface ForkInfo {
  readonly sandbox?: SandboxInfo;
  readonly error?: { readonly code: number; readonly message: string; readonly remediation?: string };
}

export interface SnapshotInfo {
  /** what it is referred to by */
  readonly snapshotID: string;
  readonly names: readonly string[];
  readonly templateID: string;
  readonly sandboxID: string;
  readonly createdAt: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
}

export interface VerificationInfo {
  readonly checkedBytes: number;
  readonly problems: readonly { readonly artefact: string; readonly path: string; readonly message: string }[];
}

export interface TemplateInfo {
  readonly templateID: string;
  readonly aliases: readonly string[];
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
  readonly spawnCount: number;
  readonly updatedAt: string;
}

export interface ImageInfo {
  readonly name: string;
  readonly digest: string;
  readonly diskSizeMB: number;
  readonly layers: number;
  readonly uniqueBytes: number;
  readonly sharedBytes: number;
  readonly remoteBytes: number;
  readonly usedBy: readonly string[];
}

/** What was removed because nobody needed it. */
export interface CollectedInfo {
  readonly removed: readonly { readonly kind: string; readonly path: string; readonly bytes: number }[];
  readonly freedBytes: number;
}

/** A name of a version of a template. */
export interface TagInfo {
  readonly tag: string;
  readonly buildID: string;
  readonly createdAt: string;
}

/** A build of a template. */
export interface BuildRef {
  readonly templateID: string;
  readonly buildID: string;
}

export interface BuildInfo extends BuildRef {
  readonly status: string;
  readonly logEntries: readonly { readonly timestamp: string; readonly level: string; readonly message: string }[];
  readonly reason?: { readonly message: string };
}

export interface ApiKeyInfo {
  readonly id: string;
  readonly name: string;
  readonly mask: {
    readonly prefix: string;
    readonly maskedValuePrefix: string;
    readonly maskedValueSuffix: string;
  };
  readonly createdAt: string;
  readonly lastUsed: string | null;
}

/** Sizes in bytes. */
export interface MetricInfo {
  readonly timestamp: string;
  readonly cpuCount: number;
  readonly cpuUsedPct: number;
  readonly memUsed: number;
  readonly memTotal: number;
  readonly diskUsed: number;
  readonly diskTotal: number;
}

export interface LogInfo {
  readonly timestamp: string;
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface CreateOptions {
  readonly templateID: string;
  readonly timeout: number;
  readonly envVars?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly allow_internet_access?: boolean;
}

const COLD_TIMEOUT_MS = 3_600_000;
/** For what reads or writes as much as a sandbox has. */
const SNAPSHOT_TIMEOUT_MS = 1_800_000;

/** An answer of the API that is an error; `status` is HTTP's. */
export class ApiError extends CliError {
  readonly status: number;

  constructor(status: number, message: string, remediation?: string) {
    super(message, remediation);
    this.status = status;
  }
}

/** The control plane, as any HTTP client would use it. */
export class ControlPlane {
  readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  async create(options: CreateOptions): Promise<SandboxInfo> {
    return (await this.#request('POST', '/v2/sandboxes', options)) as SandboxInfo;
  }

  /** Boots an image; the answer comes when it runs, and pulling it may take long. */
  async createCold(options: Readonly<Record<string, unknown>>): Promise<SandboxInfo> {
    const signal = AbortSignal.timeout(COLD_TIMEOUT_MS);
    return (await (await this.#send('POST', '/sandboxes-cold', options, signal)).json()) as SandboxInfo;
  }

  async get(sandboxId: string): Promise<SandboxInfo> {
    return (await this.#request('GET', `/sandboxes/${encodeURIComponent(sandboxId)}`)) as SandboxInfo;
  }

  /** All sandboxes that match, page after page. `signal` bounds the whole. */
  async list(query: URLSearchParams, signal?: AbortSignal): Promise<SandboxInfo[]> {
    const all: SandboxInfo[] = [];
    const page = new URLSearchParams(query);
    for (;;) {
      const response = await this.#send('GET', `/v2/sandboxes?${page}`, undefined, signal);
      all.push(...((await response.json()) as SandboxInfo[]));
      const next = response.headers.get('x-next-token');
      if (next === null || next === '') return all;
      page.set('nextToken', next);
    }
  }

  async connect(sandboxId: string, timeout: number): Promise<SandboxInfo> {
    const path = `/v2/sandboxes/${encodeURIComponent(sandboxId)}/connect`;
    return (await this.#request('POST', path, { timeout })) as SandboxInfo;
  }

  /** @param memory whether more than the disk is kept */
  async pause(sandboxId: string, memory: boolean): Promise<void> {
    await this.#request('POST', `/sandboxes/${encodeURIComponent(sandboxId)}/pause`, { memory });
  }

  /** @param memory whether it goes on with its memory, if that was kept */
  async resume(sandboxId: string, timeout: number, memory: boolean): Promise<SandboxInfo> {
    const path = `/sandboxes/${encodeURIComponent(sandboxId)}/resume`;
    return (await this.#request('POST', path, { timeout, memory })) as SandboxInfo;
  }

  /** One entry for each child. The children of one call start a few at a time, so that many of them take a while. */
  async fork(sandboxId: string, count: number, timeout: number): Promise<ForkInfo[]> {
    const path = `/sandboxes/${encodeURIComponent(sandboxId)}/fork`;
    const limit = AbortSignal.timeout(120_000 + count * 30_000);
    return (await (await this.#send('POST', path, { count, timeout }, limit)).json()) as ForkInfo[];
  }

  /** Answers when all of it is on the disk. */
  async takeSnapshot(sandboxId: string, name: string | undefined): Promise<SnapshotInfo> {
    const path = `/sandboxes/${encodeURIComponent(sandboxId)}/snapshots`;
    const body = name === undefined ? {} : { name };
    const response = await this.#send('POST', path, body, AbortSignal.timeout(SNAPSHOT_TIMEOUT_MS));
    return (await response.json()) as SnapshotInfo;
  }

  /** All pages of it. */
  async snapshots(query: Readonly<Record<string, string>> = {}, signal?: AbortSignal): Promise<SnapshotInfo[]> {
    const all: SnapshotInfo[] = [];
    let nextToken: string | null = null;
    do {
      const page = new URLSearchParams({ ...query, ...(nextToken === null ? {} : { nextToken }) });
      const response = await this.#send('GET', `/snapshots?${page}`, undefined, signal);
      all.push(...((await response.json()) as SnapshotInfo[]));
      nextToken = response.headers.get('x-next-token');
    } while (nextToken !== null);
    return all;
  }

  async snapshot(name: string): Promise<SnapshotInfo> {
    return (await this.#request('GET', `/snapshots/${encodeURIComponent(name)}`)) as SnapshotInfo;
  }

  async verifySnapshot(name: string): Promise<VerificationInfo> {
    const path = `/snapshots/${encodeURIComponent(name)}/verify`;
    const response = await this.#send('POST', path, undefined, AbortSignal.timeout(SNAPSHOT_TIMEOUT_MS));
    return (await response.json()) as VerificationInfo;
  }

  async setTimeout(sandboxId: string, seconds: number): Promise<void> {
    await this.#request('POST', `/sandboxes/${encodeURIComponent(sandboxId)}/timeout`, { timeout: seconds });
  }

  async refresh(sandboxId: string, seconds: number): Promise<void> {
    await this.#request('POST', `/sandboxes/${encodeURIComponent(sandboxId)}/refreshes`, { duration: seconds });
  }

  async kill(sandboxId: string): Promise<void> {
    await this.#request('DELETE', `/sandboxes/${encodeURIComponent(sandboxId)}`);
  }

  async templates(signal?: AbortSignal): Promise<TemplateInfo[]> {
    return (await (await this.#send('GET', '/templates', undefined, signal)).json()) as TemplateInfo[];
  }

  async template(name: string): Promise<Readonly<Record<string, unknown>>> {
    return (await this.#request('GET', `/templates/${encodeURIComponent(name)}`)) as Record<string, unknown>;
  }

  async templateTags(name: string): Promise<readonly TagInfo[]> {
    return (await this.#request('GET', `/templates/${encodeURIComponent(name)}/tags`)) as TagInfo[];
  }

  async tagTemplate(target: string, tags: readonly string[]): Promise<void> {
    await this.#request('POST', '/templates/tags', { target, tags });
  }

  async untagTemplate(name: string, tags: readonly string[]): Promise<void> {
    await this.#request('DELETE', '/templates/tags', { name, tags });
  }

  async removeTemplate(name: string): Promise<void> {
    await this.#request('DELETE', `/templates/${encodeURIComponent(name)}`);
  }

  async images(): Promise<ImageInfo[]> {
    return (await this.#request('GET', '/aenv/images')) as ImageInfo[];
  }

  async removeImage(image: string): Promise<CollectedInfo> {
    return (await this.#request('DELETE', `/aenv/images/${encodeURIComponent(image)}`)) as CollectedInfo;
  }

  async collectImages(): Promise<CollectedInfo> {
    return (await this.#request('POST', '/aenv/images/gc')) as CollectedInfo;
  }

  /** Orders a template; nothing happens before `startBuild`. */
  async orderTemplate(wanted: { readonly name: string }): Promise<BuildRef> {
    return (await this.#request('POST', '/v3/templates', wanted)) as BuildRef;
  }

  async startBuild({ templateID, buildID }: BuildRef, build: { readonly fromImage: string }): Promise<void> {
    const path = `/v2/templates/${encodeURIComponent(templateID)}/builds/${encodeURIComponent(buildID)}`;
    await this.#request('POST', path, build);
  }

  /** Builds a template that the server brings; the build goes on by itself. */
  async buildTemplate(name: string): Promise<BuildRef> {
    return (await this.#request('POST', `/aenv/templates/${encodeURIComponent(name)}/builds`)) as BuildRef;
  }

  /** @param logsOffset log entries that were read already */
  async buildStatus({ templateID, buildID }: BuildRef, logsOffset: number): Promise<BuildInfo> {
    const path = `/templates/${encodeURIComponent(templateID)}/builds/${encodeURIComponent(buildID)}/status`;
    return (await this.#request('GET', `${path}?logsOffset=${logsOffset}`)) as BuildInfo;
  }

  async keys(): Promise<ApiKeyInfo[]> {
    return (await this.#request('GET', '/api-keys')) as ApiKeyInfo[];
  }

  /** The answer is the only place where the key itself ever stands. */
  async createKey(name: string): Promise<ApiKeyInfo & { readonly key: string }> {
    return (await this.#request('POST', '/api-keys', { name })) as ApiKeyInfo & { key: string };
  }

  async revokeKey(keyId: string): Promise<void> {
    await this.#request('DELETE', `/api-keys/${encodeURIComponent(keyId)}`);
  }

  /** All samples that the server has, oldest first. */
  async metrics(sandboxId: string): Promise<MetricInfo[]> {
    return (await this.#request('GET', `/sandboxes/${encodeURIComponent(sandboxId)}/metrics`)) as MetricInfo[];
  }

  /** Entries from a moment on (`ms` since the epoch, inclusive), oldest first, at most a thousand. */
  async logs(sandboxId: string, from: number, level: string | undefined): Promise<LogInfo[]> {
    const query = new URLSearchParams({ cursor: String(from), ...(level === undefined ? {} : { level }) });
    const path = `/v2/sandboxes/${encodeURIComponent(sandboxId)}/logs?${query}`;
    return ((await this.#request('GET', path)) as { logs: LogInfo[] }).logs;
  }

  async #request(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await this.#send(method, path, body);
    const text = await response.text();
    return text === '' ? undefined : JSON.parse(text);
  }

  async #send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { 'x-api-key': this.settings.apiKey };
    if (body !== undefined) headers['content-type'] = 'application/json';
    let response: Response;
    try {
      response = await fetch(`${this.settings.url}${path}`, {
        method,
        headers,
        redirect: 'error',
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal ?? AbortSignal.timeout(120_000),
      });
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new CliError(`cannot reach ${this.settings.url}: ${cause}`, 'Is the daemon up? `aenv up` starts it here.');
    }
    if (!response.ok) throw await toError(response, this.settings.url);
    return response;
  }
}

async function toError(response: Response, url: string): Promise<ApiError> {
  const text = await response.text();
  let message = `${url} answered ${response.status}`;
  let remediation: string | undefined;
  try {
    const body = JSON.parse(text) as { message?: unknown; remediation?: unknown };
    if (typeof body.message === 'string') message = body.message;
    if (typeof body.remediation === 'string') remediation = body.remediation;
  } catch {
    // Not our server, or something in between.
  }
  if (response.status === 401) remediation = 'Check the key with `aenv auth`, or AENV_API_KEY.';
  return new ApiError(response.status, message, remediation);
}
