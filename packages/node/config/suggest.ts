/** The known name that is closest to a misspelt one, if it is close enough to be meant. */
export function suggest(unknown: string, known: readonly string[], maxDistance = Math.max(2, unknown.length / 3)) {
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(unknown, name);
    if (distance <= maxDistance && (best === undefined || distance < best.distance)) best = { name, distance };
  }
  return best?.name;
}

/** Letters to insert, drop or replace (Levenshtein); names are short, so are the rows. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replace = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replace, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
