/**
 * The results of steps that run side by side, as `Promise.all` gives them; but it waits for all of them also when one
 * fails. What the others have taken is known by then, and can be undone.
 */
export async function allEnded<T extends readonly unknown[]>(
  steps: {
    readonly [K in keyof T]: Promise<T[K]>;
  },
): Promise<T> {
  await Promise.allSettled(steps);
  return (await Promise.all(steps)) as unknown as T;
}
