export interface Summary {
  readonly samples: number;
  readonly median: number;
  readonly p95: number;
  readonly least: number;
}

export function summarize(values: readonly number[]): Summary {
  return {
    samples: values.length,
    median: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    least: quantile(values, 0),
  };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Between the two nearest samples, as most tools do it. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export function shuffled<Item>(items: readonly Item[]): Item[] {
  const order = items.map((item) => ({ item, key: Math.random() }));
  return order.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
}
