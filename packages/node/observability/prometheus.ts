import type { Labels, Metrics } from '@aenv/platform/observability/metrics.ts';
import * as prom from 'prom-client';

/** Metrics of a node and their text form. */
export interface NodeMetrics extends Metrics {
  /** media type of `render()` */
  readonly contentType: string;
  /** all series in the Prometheus text format */
  render(): Promise<string>;
}

/**
 * Metrics in a registry of their own. Asking twice for a name gives the same series, so that parts need not know of one
 * another.
 * @param options.process whether metrics of the process itself (memory, CPU, event loop) are included
 */
export function createMetrics(options: { readonly process: boolean } = { process: true }): NodeMetrics {
  const registry = new prom.Registry();
  if (options.process) prom.collectDefaultMetrics({ register: registry });
  const known = new Map<string, unknown>();
  const once = <T>(name: string, make: () => T): T => {
    const metric = known.get(name) ?? make();
    known.set(name, metric);
    return metric as T;
  };
  return {
    contentType: registry.contentType,
    render: () => registry.metrics(),
    counter(name, help, labels = []) {
      const metric = once(name, () => new prom.Counter({ name, help, labelNames: [...labels], registers: [registry] }));
      return { add: (value = 1, values: Labels = {}) => metric.inc({ ...values }, value) };
    },
    gauge(name, help, labels = []) {
      const metric = once(name, () => new prom.Gauge({ name, help, labelNames: [...labels], registers: [registry] }));
      return {
        set: (value, values: Labels = {}) => metric.set({ ...values }, value),
        remove: (values) => metric.remove({ ...values }),
      };
    },
    histogram(name, help, buckets, labels = []) {
      const config = { name, help, buckets: [...buckets], labelNames: [...labels], registers: [registry] };
      const metric = once(name, () => new prom.Histogram(config));
      return { observe: (value, values: Labels = {}) => metric.observe({ ...values }, value) };
    },
  };
}
