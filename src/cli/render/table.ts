import { stripVTControlCharacters } from 'node:util';

/** Columns two spaces apart; the last one may run on. Styled cells count by what is seen of them. */
export function renderTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, seen(cell));
  }
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell + ' '.repeat((widths[index] ?? 0) - seen(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function seen(cell: string): number {
  return stripVTControlCharacters(cell).length;
}
