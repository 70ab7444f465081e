/** Metrics as every room sees them, in Prometheus terms; `packages/node` gives the real ones. */
export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  gauge(name: string, help: string, labels?: readonly string[]): Gauge;
  /** `buckets` in the unit of the name, ascending. */
  histogram(name: string, help: string, buckets: readonly number[], labels?: readonly string[]): Histogram;
}

export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(value?: number, labels?: Labels): void;
}

export interface Gauge {
  set(value: number, labels?: Labels): void;
  /** Drops the series, so that nothing reports on what no longer exists. */
  remove(labels: Labels): void;
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/** Metrics that go nowhere. */
export const silentMetrics: Metrics = {
  counter: () => ({ add() {} }),
  gauge: () => ({ set() {}, remove() {} }),
  histogram: () => ({ observe() {} }),
};
