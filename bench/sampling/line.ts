/** A straight line: `intercept` at 0, and what each unit more adds. */
export interface Line {
  readonly intercept: number;
  readonly slope: number;
}

/** The line with the least squares of distances. @throws RangeError without two different places */
export function lineThrough(points: readonly (readonly [x: number, y: number])[]): Line {
  const meanX = mean(points.map(([x]) => x));
  const meanY = mean(points.map(([, y]) => y));
  let [both, squares] = [0, 0];
  for (const [x, y] of points) {
    both += (x - meanX) * (y - meanY);
    squares += (x - meanX) ** 2;
  }
  if (!(squares > 0)) throw new RangeError('a line goes through two places at least');
  const slope = both / squares;
  return { intercept: meanY - slope * meanX, slope };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
