import { HAZARDS, type HazardName } from './hazards.ts';

export interface HazardFinding {
  readonly name: HazardName;
  readonly status: 'ok' | 'failed' | 'not checked';
  readonly promise: string;
  /** what was seen instead */
  readonly detail: readonly string[];
  readonly remedy?: string;
}

/** What was seen of each hazard. */
export class Findings {
  readonly #checked = new Set<HazardName>();
  readonly #failures = new Map<HazardName, string[]>();

  check(name: HazardName, holds: boolean, detail: string): void {
    this.#checked.add(name);
    if (!holds) this.#failures.set(name, [...(this.#failures.get(name) ?? []), detail]);
  }

  equal(name: HazardName, what: string, actual: unknown, expected: unknown): void {
    this.check(name, actual === expected, `${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  }

  distinct(name: HazardName, what: string, values: readonly unknown[]): void {
    this.check(name, new Set(values).size === values.length, `${what} are not all different: ${values.join(', ')}`);
  }

  all(): HazardFinding[] {
    return HAZARDS.map(({ name, promise, remedy }) => {
      const detail = this.#failures.get(name) ?? [];
      if (detail.length > 0) return { name, promise, detail, remedy, status: 'failed' };
      return { name, promise, detail, status: this.#checked.has(name) ? 'ok' : 'not checked' };
    });
  }
}
