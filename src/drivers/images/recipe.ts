import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toTar } from '../../lib/tar-archive.ts';

/** The images that code runs in, by their folder below images/: what `hotcell build` makes unless it is told which. */
export const BUILDABLE = ['python', 'ruby', 'node', 'bun', 'shell', 'bun-runner-base'] as const;

/** Workers of the fleet are made from it. Not among the others: it needs an agent that has to be fetched first. */
export const WORKER_IMAGE = 'mahabharatha-worker';

/** The images that we can make. */
export const RECIPES = [...BUILDABLE, WORKER_IMAGE] as const;
export type Buildable = (typeof RECIPES)[number];

export function isBuildable(name: string): name is Buildable {
  return RECIPES.some((buildable) => buildable === name);
}

/** Cells of `run_code` are made from it, and clients know it by this name. */
export const RUNNER_BASE = 'bun-runner-base' satisfies Buildable;

/** Images that others know by their own name. */
const WELL_KNOWN: readonly string[] = [RUNNER_BASE, WORKER_IMAGE];

/** What `hotcell build` calls the image that it makes from a recipe. */
export function toBuiltTag(recipe: string): string {
  return WELL_KNOWN.includes(recipe) ? `${recipe}:latest` : `hotcell-${recipe}:latest`;
}

/** Images of ours that will do as a base where the usual one would have to be pulled. */
export const OTHER_BASES: Readonly<Partial<Record<Buildable, string>>> = {
  [RUNNER_BASE]: toBuiltTag('bun'),
};

/** The recipe whose image has this name, if it is one of ours. */
export function recipeOfTag(image: string): Buildable | undefined {
  return RECIPES.find((name) => image === toBuiltTag(name) || `${image}:latest` === toBuiltTag(name));
}

export interface Recipe {
  /** The files of the build, as the engine takes them. */
  readonly context: Uint8Array;
  /** Changes when one of the files does. */
  readonly hash: string;
  /** The base that is used unless another is named. */
  readonly base: string;
}

export async function readRecipe(folder: string, name: Buildable): Promise<Recipe> {
  const [dockerfile, prepare] = await Promise.all([
    readFile(join(folder, name, 'Dockerfile')),
    readFile(join(folder, 'prepare.sh')),
  ]);
  const base = /^ARG BASE=(\S+)$/m.exec(dockerfile.toString())?.[1];
  if (base === undefined) throw new Error(`${join(folder, name, 'Dockerfile')} has no line ARG BASE=…`);
  const context = toTar([
    { path: 'Dockerfile', content: dockerfile, mode: 0o644 },
    { path: 'prepare.sh', content: prepare, mode: 0o755 },
  ]);
  return { context, hash: `sha256:${createHash('sha256').update(context).digest('hex')}`, base };
}
