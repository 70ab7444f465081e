import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { SingleKeyStore } from '../auth/key-store.ts';
import { createMetrics } from '../observability/prometheus.ts';
import { openApiDocument } from './openapi.ts';
import { allRoutes } from './routes/all.ts';

/** The text of docs/reference/openapi.json. Handlers are described, never called. */
export function openApiPage(version: string): string {
  const uncalled = new Proxy({}, { get: () => () => Promise.reject(new Error('only described')) });
  const routes = allRoutes({
    sandboxes: uncalled as never,
    templates: uncalled as never,
    snapshots: uncalled as never,
    builds: uncalled as never,
    images: uncalled as never,
    storage: uncalled as never,
    drives: uncalled as never,
    observations: uncalled as never,
    apiKeys: uncalled as never,
    keys: new SingleKeyStore(''),
    settings: { maxTimeoutSeconds: 0, jsonBodyBytes: 0 },
    log: silentLogger,
    metrics: createMetrics({ process: false }),
    version,
  });
  return `${JSON.stringify(openApiDocument(routes, version), null, 2)}\n`;
}

if (import.meta.main) process.stdout.write(openApiPage(process.argv[2] ?? '0.0.0'));
