/** `fresh`: a single-use cell for every run. `shared`: one long-lived cell per language. */
export const STRATEGIES = ['fresh', 'shared'] as const;
export type Strategy = (typeof STRATEGIES)[number];
