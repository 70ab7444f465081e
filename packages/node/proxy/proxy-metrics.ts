import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Counter, Gauge, Metrics } from '@aenv/platform/observability/metrics.ts';

/** How a request through the proxy came out: a class of status, an error code of the platform, or one of the below. */
export type Outcome =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'upgraded' }
  /** answered by the platform with this error */
  | { readonly kind: 'refused'; readonly error: AenvError }
  /** the client went away first */
  | { readonly kind: 'client_gone' }
  /** broken off after the answer had begun */
  | { readonly kind: 'broken' };

export function labelOf(outcome: Outcome): string {
  if (outcome.kind === 'answered') return `${Math.floor(outcome.status / 100)}xx`;
  if (outcome.kind === 'refused') return outcome.error.code;
  return outcome.kind;
}

/** What the proxy counts. No label names a sandbox, so the number of series stays small. */
export class ProxyMetrics {
  readonly #requests: Counter;
  readonly #open: Gauge;
  readonly #now = { http: 0, upgraded: 0 };

  constructor(metrics: Metrics) {
    this.#requests = metrics.counter('aenv_proxy_requests_total', 'Requests to sandboxes by how they came out.', [
      'outcome',
    ]);
    this.#open = metrics.gauge('aenv_proxy_open', 'Requests and upgraded connections under way.', ['kind']);
    this.#open.set(0, { kind: 'http' });
    this.#open.set(0, { kind: 'upgraded' });
  }

  begin(kind: 'http' | 'upgraded'): void {
    this.#open.set(++this.#now[kind], { kind });
  }

  end(kind: 'http' | 'upgraded'): void {
    this.#open.set(--this.#now[kind], { kind });
  }

  count(outcome: Outcome): void {
    this.#requests.add(1, { outcome: labelOf(outcome) });
  }
}
