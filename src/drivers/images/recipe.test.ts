import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { BUILT_IN_LANGUAGES } from '../../core/language.ts';
import { BUILDABLE, RECIPES as NAMES, isBuildable, readRecipe, recipeOfTag, toBuiltTag } from './recipe.ts';

const RECIPES = fileURLToPath(new URL('../../../images', import.meta.url));

describe.each(NAMES)('the recipe %s', (name) => {
  test('has an official image as its base, and both files in its context', async () => {
    const { base, context } = await readRecipe(RECIPES, name);
    expect(base).toMatch(/^(python|ruby|node|oven\/bun|debian):[\w.-]+-slim$/);
    const listed = execFileSync('tar', ['-tvf', '-'], { input: context, encoding: 'utf8' });
    expect(listed).toMatch(/-rw-r--r-- .* Dockerfile\n-rwxr-xr-x .* prepare\.sh\n$/);
  });

  test('has a hash that is always the same, and other than that of the others', async () => {
    const { hash } = await readRecipe(RECIPES, name);
    expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect((await readRecipe(RECIPES, name)).hash).toBe(hash);
    const others = NAMES.filter((other) => other !== name);
    expect(
      (await Promise.all(others.map((other) => readRecipe(RECIPES, other)))).map((one) => one.hash),
    ).not.toContain(hash);
  });

  test('is found again by the name of its image', () => {
    expect(recipeOfTag(toBuiltTag(name))).toBe(name);
    expect(recipeOfTag(toBuiltTag(name).replace(':latest', ''))).toBe(name);
  });
});

test('[MC-05] the base of run_code has the name by which clients know it', () => {
  expect(toBuiltTag('bun-runner-base')).toBe('bun-runner-base:latest');
  expect(toBuiltTag('bun')).toBe('hotcell-bun:latest');
});

test('[FL-14] so has the image of the workers, which is not made together with the others', () => {
  expect(toBuiltTag('mahabharatha-worker')).toBe('mahabharatha-worker:latest');
  expect(BUILDABLE).not.toContain('mahabharatha-worker');
});

test('no other image is taken for one of ours', () => {
  expect(
    ['python:3', 'hotcell-python:1', 'a/hotcell-python:latest', 'hotcell-perl'].map(recipeOfTag),
  ).toEqual([undefined, undefined, undefined, undefined]);
});

test('every recipe that a language names is there', () => {
  const named = Object.values(BUILT_IN_LANGUAGES).map(({ recipe }) => recipe ?? '');
  expect(named.filter((recipe) => !isBuildable(recipe))).toEqual([]);
});
