export interface UntilOptions {
  readonly timeoutMs: number;
  readonly what: string;
  readonly everyMs?: number;
  /** gives up at once when true: the condition can no longer come */
  readonly fatal?: () => boolean;
}

/** Waits for a condition, not for time. What the condition throws counts as "not yet" and is told when time is up. */
export async function until(condition: () => Promise<boolean> | boolean, options: UntilOptions): Promise<void> {
  const deadline = Date.now() + options.timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      if (await condition()) return;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (options.fatal?.() || Date.now() > deadline) {
      throw new Error(`waited in vain: ${options.what}`, last === undefined ? {} : { cause: last });
    }
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 50));
  }
}
