const LONGEST = 63;

/** The name of a cell as one that a machine may have. */
export function toHostname(name: string): string {
  const legal = name.replaceAll(/[^0-9A-Za-z-]+/g, '-').replace(/^-+/, '');
  return legal.slice(0, LONGEST).replace(/-+$/, '') || 'cell';
}
