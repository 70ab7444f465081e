import type { Row } from '../measurement.ts';
import { median, round, summarise } from '../sampling/statistics.ts';

/** What a value should be; none for a figure that is only told. */
export type Goal = { readonly atMost: number } | { readonly atLeast: number } | undefined;

type Detail = Readonly<Record<string, unknown>>;

export function row(name: string, value: number, unit: string, goal?: Goal, detail?: Detail): Row {
  return {
    name,
    value: round(value),
    unit,
    ...judge(value, goal),
    ...(detail === undefined ? {} : { detail }),
  };
}

/** A row for the median of a series in its own unit. */
export function seriesRow(name: string, samples: readonly number[], unit: string, goal?: Goal, detail?: Detail): Row {
  return row(name, median(samples), unit, goal, { ...summarise(samples), ...detail });
}

/**
 * A row for the ratio of two medians.
 * @param series the two, by names for the detail, numerator first
 */
export function ratioRow(
  name: string,
  series: Readonly<Record<string, readonly number[]>>,
  goal?: Goal,
  detail?: Detail,
): Row {
  const entries = Object.entries(series);
  const [over, under] = entries.map(([, samples]) => median(samples));
  if (over === undefined || under === undefined || entries.length !== 2)
    throw new RangeError('a ratio is of two series');
  const summaries = Object.fromEntries(entries.map(([key, samples]) => [key, summarise(samples)]));
  const made = row(name, over / under, 'x', goal, { ...summaries, ...detail });
  // Below nothing, a difference was lost in the noise: that is no good result.
  return { ...made, ok: made.ok && (goal === undefined || over / under >= 0) };
}

/** The value itself is judged, not what it is rounded to. */
function judge(value: number, goal: Goal): { goal: string | null; ok: boolean } {
  if (goal === undefined) return { goal: null, ok: true };
  return 'atMost' in goal
    ? { goal: `<= ${goal.atMost}`, ok: value <= goal.atMost }
    : { goal: `>= ${goal.atLeast}`, ok: value >= goal.atLeast };
}
