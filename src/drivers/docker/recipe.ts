import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toTar } from '../../lib/tar-archive.ts';

/** The images that we can make, by their folder below images/. */
export const BUILDABLE = ['python', 'ruby', 'node', 'bun', 'shell', 'bun-runner-base'] as const;
export type Buildable = (typeof BUILDABLE)[number];

export function isBuildable(name: string): name is Buildable {
  return BUILDABLE.some((buildable) => buildable === name);
}

/** Cells of `run_code` are made from it, and clients know it by this name. */
export const RUNNER_BASE = 'bun-runner-base' satisfies Buildable;

/** What `hotcell build` calls the image that it makes from a recipe. */
export function toBuiltTag(recipe: string): string {
  return recipe === RUNNER_BASE ? `${RUNNER_BASE}:latest` : `hotcell-${recipe}:latest`;
}

/** Images of ours that will do as a base where the usual one would have to be pulled. */
export const OTHER_BASES: Readonly<Partial<Record<Buildable, string>>> = {
  [RUNNER_BASE]: toBuiltTag('bun'),
};

/** The recipe whose image has this name, if it is one of ours. */
export function recipeOfTag(image: string): Buildable | undefined {
  return BUILDABLE.find((name) => image === toBuiltTag(name) || `${image}:latest` === toBuiltTag(name));
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
