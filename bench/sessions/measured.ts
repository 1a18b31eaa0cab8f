import type { Requirement } from './main.ts';

/** What one measure has found. */
export interface Measured {
  readonly title: string;
  readonly table: string;
  readonly requirements: readonly Requirement[];
}
