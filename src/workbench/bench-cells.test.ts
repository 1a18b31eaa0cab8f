import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import type { RunProgress } from './api.ts';
import { ScriptedBenches, request, run } from './scripted-benches.double.ts';
import type { ScriptedSite } from './scripted-site.double.ts';
import type { KeptWorkbenches } from './workbenches.ts';

const ME = { tenant: 'me' };

let benches: ScriptedBenches;
let site: ScriptedSite;
let all: KeptWorkbenches;

beforeEach(() => {
  benches = new ScriptedBenches();
  ({ site } = benches);
  all = benches.open();
});
afterEach(() => benches[Symbol.asyncDispose]());

describe('the cell', () => {
  test('[MC-08] is not made before the first run, and made once', async () => {
    const bench = all.open(ME);
    expect(all.facts().driver).toMatch(/not chosen/);
    await nextTurn();
    expect(site.specs).toEqual([]);
    const results = await Promise.all([run(bench, '1'), run(bench, '2'), bench.files.read('.')]);
    expect(site.specs).toHaveLength(1);
    expect(results[0].cellId).toBe('cell1');
    expect(all.facts()).toMatchObject({ driver: 'scripted', runtime: 'scripted 1' });
  });

  test('[MC-07] sees the code and the packages, and lasts no longer than the server', async () => {
    site.program = (exec) => {
      const [code] = site.cells[0]?.spec.folders ?? [];
      exec.say(readFileSync(join(code?.folder ?? '', 'main.ts'), 'utf8'));
      exec.exit();
    };
    const result = await run(all.open(ME), 'the code');
    expect(result.stdout).toBe('the code');
    expect(site.specs[0]).toMatchObject({
      kind: 'session',
      folders: [
        { name: 'code', at: '/code' },
        { name: 'packages', at: '/packages', folder: '/store' },
      ],
    });
    expect(site.specs[0]?.lasting).toBeUndefined();
    expect(site.cells[0]?.codes[0]?.request).toMatchObject({
      argv: ['bun', '--no-install', '{code}/main.ts'],
      env: { BUN_INSTALL_CACHE_DIR: '{packages}' },
      cwd: '/tmp/work',
    });
  });

  test('[MC-08] lost before a word: runs again, once', async () => {
    let losses = 0;
    site.program = (exec, cell) => {
      if (losses++ === 0) cell.lose();
      else exec.exit();
    };
    const result = await run(all.open(ME), '');
    expect(result).toMatchObject({ status: 'ok', cellId: 'cell2' });
    expect(result.warnings).toEqual([expect.stringContaining('replaced')]);
    losses = -10;
    site.program = (_, cell) => cell.lose();
    const bench = all.open(ME);
    const before = site.specs.length;
    expect(await run(bench, '')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('lost'),
    });
    expect(site.specs.length - before).toBe(2);
  });

  test('[MC-08] lost after a word: not again', async () => {
    site.program = (exec, cell) => {
      exec.say('one word');
      setImmediate(() => cell.lose());
    };
    expect(await run(all.open(ME), '')).toMatchObject({ status: 'failed', stdout: 'one word' });
    expect(site.specs).toHaveLength(1);
  });

  test('that cannot be made: the run says why, and the next one tries again', async () => {
    site.beforeCreate = () =>
      Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'no driver', { hint: 'mend it' }));
    const bench = all.open(ME);
    expect(await run(bench, '')).toMatchObject({
      status: 'failed',
      message: 'no driver',
      hint: 'mend it',
      isolation: undefined,
    });
    site.beforeCreate = () => Promise.resolve();
    expect(await run(bench, '')).toMatchObject({ status: 'ok' });
  });

  test('that does not see our folder is not used', async () => {
    site.isBlind = true;
    expect(await run(all.open(ME), '')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('does not see'),
    });
    expect(site.cells.every(({ isGone }) => isGone)).toBe(true);
  });

  test('where there are images, each language has its own', async () => {
    const ensured: unknown[] = [];
    site.images = {
      base: { name: undefined, recipe: 'base' },
      ensure: (image, onProgress) => {
        ensured.push(image);
        onProgress('building');
        return Promise.resolve();
      },
    };
    const bench = all.open(ME);
    const seen: RunProgress[] = [];
    const first = bench.run(request(''));
    first.watch((progress) => seen.push(progress));
    const typescript = await first.result;
    const python = await run(bench, '', { language: 'python' });
    expect((await run(bench, '')).cellId).toBe(typescript.cellId);
    expect(python.cellId).not.toBe(typescript.cellId);
    expect(ensured).toEqual([
      { name: undefined, recipe: 'base' },
      { name: 'python:3.10-slim', recipe: 'python' },
    ]);
    expect(typescript.phases.image).toBeGreaterThanOrEqual(0);
    expect(python.phases.packages).toBeGreaterThanOrEqual(0);
  });

  test('[MC-05] the image is there before packages are installed in a cell of it', async () => {
    const order: string[] = [];
    site.images = {
      base: { name: undefined, recipe: 'base' },
      ensure: () => Promise.resolve(void order.push('image')),
    };
    site.prepare = () => {
      order.push('packages');
      return Promise.resolve({ key: 'k', modules: 'k/node_modules', packages: [], fromStore: true });
    };
    expect(await run(all.open(ME), 'from "zod"')).toMatchObject({ status: 'ok' });
    expect(order).toEqual(['image', 'packages', 'image']);
  });
});
