import { describe, inject } from 'vitest';
import { engineHost, requireImages, whyNoEngine } from './docker-engine.ts';
import { describeThatNeeds } from './needs.ts';

/** One way to serve: a driver with a strategy. What the ways really differ in is said here, not in the tests. */
export interface Way {
  readonly name: string;
  readonly driver: 'oci' | 'docker';
  readonly strategy: 'fresh' | 'shared';
  /** For `hotcell up`. */
  readonly args: readonly string[];
  /** Why it cannot be tested here, or undefined. */
  readonly missing: string | undefined;
  /** What receipts and /health call the runtime. */
  readonly runtime: RegExp;
  /** What receipts call the thing that a cell of this language is made from. */
  imageName(language: string): RegExp;
  /** Every run has a cell of its own. Otherwise runs of a language share one, with its limits and its /tmp. */
  readonly singleUse: boolean;
  /** Shared memory has a place of its own; otherwise /dev/shm is /tmp. */
  readonly ownShm: boolean;
  /** A cell takes a third of a second of CPU to boot: tests that do nothing else do it less often. */
  readonly slowBoot: boolean;
  /** Makes what a server needs that the machine does not have. */
  prepare(): Promise<void>;
}

const RECIPE_OF: Readonly<Record<string, string>> = { javascript: 'node', typescript: 'bun', bash: 'shell' };

const OCI = {
  driver: 'oci',
  missing: undefined,
  runtime: /^(crun|runc|runsc) /,
  imageName: () => /^host:[a-z0-9]+$/,
  ownShm: false,
  slowBoot: false,
  prepare: () => Promise.resolve(),
} as const;

const DOCKER = {
  driver: 'docker',
  missing: whyNoEngine(),
  runtime: /^Docker \S+ with runc$/,
  imageName: (language: string) => new RegExp(`^hotcell-${RECIPE_OF[language] ?? language}:latest$`),
  ownShm: true,
  slowBoot: true,
  prepare: requireImages,
} as const;

function toWay(common: typeof OCI | typeof DOCKER, strategy: 'fresh' | 'shared'): Way {
  const { driver } = common;
  const engine = driver === 'docker' ? ['--set', `docker.host=${engineHost() ?? ''}`] : [];
  return {
    ...common,
    name: `${driver}/${strategy}`,
    strategy,
    singleUse: strategy === 'fresh',
    args: ['--driver', driver, '--strategy', strategy, ...engine],
  };
}

export const OCI_FRESH = toWay(OCI, 'fresh');
export const OCI_SHARED = toWay(OCI, 'shared');
export const DOCKER_FRESH = toWay(DOCKER, 'fresh');
export const DOCKER_SHARED = toWay(DOCKER, 'shared');

/**
 * Each driver with the strategy that it has by itself, and so each strategy once. What only the other two have is tested by
 * itself: shared cells of both drivers in test/e2e/shared, fresh ones in the attacks.
 */
export const USUAL_WAYS: readonly Way[] = [OCI_FRESH, DOCKER_SHARED];
export const FRESH_WAYS: readonly Way[] = [OCI_FRESH, DOCKER_FRESH];
export const SHARED_WAYS: readonly Way[] = [OCI_SHARED, DOCKER_SHARED];

/** Whether this run is about what this driver does: each tier takes its own drivers of a file. */
export function isMeant(driver: Way['driver'] | undefined): boolean {
  const ways = inject('ways') ?? 'all';
  return ways === 'all' || (driver === 'docker') === (ways === 'engine');
}

/** For what stands beside `describeEach` and has nothing to do with an engine: it belongs to one tier. */
export function describeOnce(title: string, tests: () => void): void {
  if (!isMeant('oci')) return;
  describe(title, () => {
    tests();
  });
}

/** The same tests over each of these ways. */
export function describeEach(ways: readonly Way[], tests: (way: Way) => void): void {
  for (const way of ways.filter(({ driver }) => isMeant(driver))) {
    const missing = way.missing === undefined ? undefined : `${way.name}: ${way.missing}`;
    describeThatNeeds(missing)(way.name, () => tests(way));
  }
}
