import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { planSetup, readManifests, type PlannedSetup, type SetupWish } from './plan-setup.ts';

const PACKAGE = JSON.stringify({ dependencies: { a: '1' } });

function plan(
  files: Record<string, string>,
  wish: Partial<SetupWish> = {},
  place = '/workspace',
): PlannedSetup {
  const manifests = Object.fromEntries(
    Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]),
  );
  return planSetup({ setup: 'auto', ...wish }, { manifests, platform: 'linux x64', place });
}

const keyOf = ({ plans }: PlannedSetup): string | undefined => plans[0]?.key;

describe('the set-up of a worktree', () => {
  test('[FL-01] is npm with its lock file, or without making one', () => {
    expect(plan({ 'package.json': PACKAGE, 'package-lock.json': '{}' }).plans).toMatchObject([
      { command: 'npm ci --no-audit --no-fund', products: ['node_modules'], runsAlways: false },
    ]);
    expect(plan({ 'package.json': PACKAGE }).plans).toMatchObject([
      { command: 'npm install --no-package-lock --no-audit --no-fund', products: ['node_modules'] },
    ]);
  });

  test('[FL-01] is pip in an environment of its own, beside npm if there is both', () => {
    const { plans } = plan({ 'package.json': PACKAGE, 'requirements.txt': 'six' });
    expect(plans.map(({ products }) => products)).toEqual([['node_modules'], ['.venv']]);
    expect(plans[1]?.command).toContain('-m venv .venv');
    expect(plans[1]?.command).toContain('install -r requirements.txt');
  });

  test('[FL-01] is nothing where there is nothing to install, or nobody wants it', () => {
    const nothing = { plans: [], notes: [] };
    expect(plan({})).toEqual(nothing);
    expect(plan({ 'package.json': '{"name":"x"}', 'package-lock.json': '{}' })).toEqual(nothing);
    expect(plan({ 'package.json': PACKAGE, 'requirements.txt': 'six' }, { setup: 'none' })).toEqual(nothing);
  });

  test('[FL-01] says what it does not know how to install', () => {
    expect(plan({ 'package.json': PACKAGE, 'pnpm-lock.yaml': '' })).toMatchObject({
      plans: [],
      notes: [expect.stringContaining('pnpm-lock.yaml')],
    });
    expect(plan({ 'package.json': 'no JSON' })).toMatchObject({ plans: [], notes: [expect.any(String)] });
  });

  test('[FL-01] of workspaces is done in every worktree, because its product is in many places', () => {
    expect(plan({ 'package.json': '{"workspaces":["a"]}' }).plans).toMatchObject([{ products: [] }]);
  });

  test('[FL-01] is the command of the configuration, which always runs', () => {
    const wish = { setup_command: 'make deps', setup: 'none' as const };
    expect(plan({ 'package.json': PACKAGE }, wish).plans).toMatchObject([
      { command: 'make deps', products: ['node_modules'], runsAlways: true },
    ]);
    expect(plan({}, wish).plans).toMatchObject([{ command: 'make deps', products: [] }]);
  });

  test('[FL-01] has a key for everything that it depends on, and for nothing else', () => {
    const files = { 'package.json': PACKAGE, 'package-lock.json': '{}' };
    const key = keyOf(plan(files));
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(keyOf(plan(files, {}, '/elsewhere'))).toBe(key);
    expect(keyOf(plan({ ...files, 'requirements.txt': 'six' }))).toBe(key);
    const manifests = { 'package.json': Buffer.from(PACKAGE), 'package-lock.json': Buffer.from('{}') };
    const others = [
      plan({ ...files, 'package-lock.json': '{ }' }),
      plan({ ...files, '.npmrc': 'registry=https://x' }),
      plan({ 'package.json': `${PACKAGE} ` }),
      plan(files, { setup_command: 'make' }),
      planSetup({ setup: 'auto' }, { manifests, platform: 'linux arm64', place: '/workspace' }),
    ].map(keyOf);
    expect(new Set([key, ...others]).size).toBe(6);
    // Scripts of an environment of Python have its place in them.
    expect(keyOf(plan({ 'requirements.txt': 'six' }))).not.toBe(
      keyOf(plan({ 'requirements.txt': 'six' }, {}, '/else')),
    );
  });

  test('[FL-09] is not read through links', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hotcell-setup-'));
    writeFileSync(join(folder, 'package.json'), PACKAGE);
    symlinkSync('/etc/passwd', join(folder, 'requirements.txt'));
    expect(Object.keys(await readManifests(folder))).toEqual(['package.json']);
    rmSync(folder, { recursive: true });
  });
});
