import type { LanguageName } from '../support/hello.ts';

/** One way to run a hello program. */
export interface Way {
  readonly name: WayName;
  /** Languages it can run here. */
  readonly languages: ReadonlySet<LanguageName>;
  /** Runs the program once and returns the milliseconds until everything about it is known. Throws if the answer is wrong. */
  hello(language: LanguageName): Promise<number>;
}

export const WAY_NAMES = [
  'bare',
  'cell exec',
  'docker exec',
  'hotcell warm',
  'hotcell cold',
  'docker shared',
  'docker fresh',
] as const;
export type WayName = (typeof WAY_NAMES)[number];
