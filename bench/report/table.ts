import type { Row } from '../measurement.ts';

/** The rows as text for people, one line each under a heading. */
export function table(rows: readonly Row[]): string {
  const lines = [
    ['name', 'value', 'unit', 'goal', 'ok'],
    ...rows.map((row) => [row.name, String(row.value), row.unit, row.goal ?? '', verdict(row)]),
  ];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => (column === 1 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function verdict(row: Row): string {
  if (row.goal === null) return '';
  return row.ok ? 'ok' : 'MISSED';
}
