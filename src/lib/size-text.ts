const UNITS = ['kB', 'MB', 'GB', 'TB'] as const;

/** A size for people, in the units that engines and registries use: `29.1 MB`. */
export function toSizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  let value = bytes;
  let shown: string = UNITS[0];
  for (const unit of UNITS) {
    value /= 1000;
    shown = unit;
    if (value < 999.5) break;
  }
  return `${value >= 99.5 ? value.toFixed(0) : value.toFixed(1)} ${shown}`;
}
