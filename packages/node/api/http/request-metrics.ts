import type { Metrics } from '@aenv/platform/observability/metrics.ts';

const BUCKETS = [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60];
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export interface RequestFacts {
  readonly method: string;
  readonly route: string;
  readonly status: number;
}

/** Durations of requests by method, route pattern and status; labels are bounded whatever clients send. */
export function requestMetrics(metrics: Metrics): (facts: RequestFacts, seconds: number) => void {
  const durations = metrics.histogram(
    'aenv_api_request_duration_seconds',
    'Time from a request of the control plane to its answer.',
    BUCKETS,
    ['method', 'route', 'status'],
  );
  return ({ method, route, status }, seconds) =>
    durations.observe(seconds, { method: METHODS.has(method) ? method : 'other', route, status: String(status) });
}
