import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { ApiKeys } from '../../auth/api-keys.ts';
import { SingleKeyStore } from '../../auth/key-store.ts';
import { loadConfig } from '../../config/load.ts';
import { createLoggerOn } from '../../observability/logger.ts';
import { createMetrics } from '../../observability/prometheus.ts';
import { type Api, createApi } from '../api.ts';
import type { RequestContext } from '../http/env.ts';
import { type ApiParts, type ApiSettings, apiSettings } from '../parts.ts';
import { FakeDrives } from './fake-drives.ts';
import { FakeImages } from './fake-images.ts';
import { FakeObservations } from './fake-observations.ts';
import { FakeBuilds, FakeSandboxes, FakeTemplates } from './fake-services.ts';
import { FakeStorage } from './fake-storage.ts';

export const KEY = `e2b_${'0a'.repeat(32)}`;

/** Answers are compared as plain data. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly list: readonly Record<string, unknown>[];
  readonly text: string;
}

export interface ApiFixture extends AsyncDisposable {
  readonly api: Api;
  readonly sandboxes: FakeSandboxes;
  readonly templates: FakeTemplates;
  readonly builds: FakeBuilds;
  readonly images: FakeImages;
  readonly storage: FakeStorage;
  readonly drives: FakeDrives;
  readonly observations: FakeObservations;
  readonly logLines: string[];
  /** A request with the key; `body` is sent as JSON unless it is text already. */
  request(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<PlainAnswer>;
}

export interface RequestOptions {
  readonly headers?: Record<string, string>;
  readonly context?: RequestContext;
}

/** @param parts that are not those of the fixture */
export function apiFixture(
  settings: Partial<ApiSettings> = {},
  parts: Partial<Pick<ApiParts, 'sandboxes' | 'snapshots'>> = {},
): ApiFixture {
  const templates = new FakeTemplates();
  const sandboxes = new FakeSandboxes(templates);
  const observations = new FakeObservations();
  const builds = new FakeBuilds();
  const images = new FakeImages();
  const storage = new FakeStorage();
  const drives = new FakeDrives();
  const bootstrap = new SingleKeyStore(KEY);
  const apiKeys = new ApiKeys({ ledger: sandboxes.ledger.keys, bootstrap, clock: systemClock, log: silentLogger });
  const logLines: string[] = [];
  const api = createApi({
    sandboxes,
    templates,
    snapshots: sandboxes.snapshots,
    builds,
    images,
    storage,
    drives,
    observations,
    keys: apiKeys,
    apiKeys,
    settings: { ...apiSettings(loadConfig({ env: { AENV_HOME: '/nonexistent' } })), ...settings },
    log: createLoggerOn({ write: (line: string) => logLines.push(line) }, 'debug'),
    metrics: createMetrics({ process: false }),
    version: '0.0.0',
    ...parts,
  });
  return {
    api,
    sandboxes,
    templates,
    builds,
    images,
    storage,
    drives,
    observations,
    logLines,
    async request(method, path, body, options = {}) {
      const init: RequestInit = { method, headers: { 'X-API-Key': KEY, ...options.headers } };
      if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body);
      const response = await api.fetch(new Request(`http://node.test${path}`, init), options.context);
      const text = await response.text();
      const json = response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : {};
      return { status: response.status, headers: response.headers, body: json, list: json, text };
    },
    async [Symbol.asyncDispose]() {
      await sandboxes.close();
      templates.close();
    },
  };
}
