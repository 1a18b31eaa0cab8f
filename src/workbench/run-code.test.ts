import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
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

describe('a run', () => {
  test('[MC-06] ends at its time, and may not ask for more than the operator allows', async () => {
    site.program = () => {};
    const bench = all.open(ME);
    expect(await run(bench, '', { timeoutMs: 20 })).toMatchObject({
      status: 'timeout',
      limits: { wallTimeMs: 20 },
    });
    expect(() => bench.run(request('', { timeoutMs: 1e9 }))).toThrow(/at most 600000/);
    expect(() => bench.run(request('', { language: 'cobol' }))).toThrow(/no language "cobol"/);
  });

  test('[MC-10] with a syntax error: nothing is installed, nothing runs', async () => {
    const result = await run(all.open(ME), 'syntax error');
    expect(result).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/main\.ts:3:4\)\n3 \| \^/),
    });
    expect(site.specs).toEqual([]);
  });

  test('[MC-10, MC-11] gets its packages first; one that cannot be had is named, and the code does not run', async () => {
    const from = { from: 'registry.example', direct: true, version: '1.0.0' };
    site.prepare = ([spec], options) => {
      options.onProgress('installing');
      if (spec?.name === 'bad') throw new HotcellError('PACKAGE_UNAVAILABLE', 'there is no bad');
      const packages = [{ name: spec?.name ?? '', ...from }];
      return Promise.resolve({
        key: 'k',
        modules: 'store/k/node_modules',
        packages,
        fromStore: spec?.name === 'old',
      });
    };
    const bench = all.open(ME);
    expect(await run(bench, 'from "new"')).toMatchObject({
      packages: [{ name: 'new' }],
      installed: [{ name: 'new' }],
    });
    expect(await run(bench, 'from "old"')).toMatchObject({ packages: [{ name: 'old' }], installed: [] });
    expect(await run(bench, '', { packages: ['asked'] })).toMatchObject({ packages: [{ name: 'asked' }] });
    const before = site.cells[0]?.codes.length;
    expect(await run(bench, 'from "bad"')).toMatchObject({ status: 'failed', message: 'there is no bad' });
    expect(site.cells[0]?.codes.length).toBe(before);
    expect(await run(bench, '', { language: 'python', packages: ['x'] })).toMatchObject({ status: 'failed' });
  });

  test.each([
    [{ kind: 'exited', code: 0 }, [], { status: 'ok', exitCode: 0 }],
    [{ kind: 'exited', code: 3 }, [], { status: 'error', exitCode: 3 }],
    [{ kind: 'signalled', signal: 11 }, [], { status: 'error', signal: 'SIGSEGV' }],
    [{ kind: 'signalled', signal: 9 }, ['memoryBytes'], { status: 'memory' }],
    [{ kind: 'exited', code: 137 }, ['memoryBytes'], { status: 'memory' }],
    [{ kind: 'exited', code: 1 }, ['memoryBytes'], { status: 'error' }],
    [{ kind: 'limit', limit: 'memoryBytes' }, [], { status: 'memory' }],
    [
      { kind: 'limit', limit: 'outputBytes' },
      [],
      { status: 'error', message: expect.stringContaining('output') },
    ],
  ] as const)('that ends with %j %j', async (outcome, reached, expected) => {
    site.program = (exec) => exec.exit(outcome, { cpuMs: 0, peakMemoryBytes: undefined, reached });
    expect(await run(all.open(ME), '')).toMatchObject(expected);
  });

  test('[MC-12] is cancelled in every phase', async () => {
    site.program = (exec) => exec.say('begun');
    const waitsFor = (signal: AbortSignal): Promise<never> =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('stopped')));
      });
    let packagesBegun = false;
    let packagesStopped = false;
    site.prepare = async (_, { signal }) => {
      packagesBegun = true;
      await waitsFor(signal).catch(() => (packagesStopped = true));
      throw new Error('stopped');
    };
    const cell = Promise.withResolvers<void>();
    site.beforeCreate = () => cell.promise;
    const bench = all.open(ME);
    const inPackages = bench.run(request('from "slow"'));
    const waiting = bench.run(request(''));
    await vi.waitFor(() => expect(packagesBegun).toBe(true));
    expect(inPackages.phase).toBe('packages');
    expect(waiting.phase).toBe('waiting');
    await waiting.cancel();
    await inPackages.cancel();
    expect(packagesStopped).toBe(true);
    const inCell = bench.run(request(''));
    await vi.waitFor(() => expect(inCell.phase).toBe('cell'));
    await inCell.cancel();
    const running = bench.run(request(''));
    cell.resolve();
    const exec = await benches.nextCode();
    await vi.waitFor(() => expect(running.output().stdout).toBe('begun'));
    await running.cancel();
    expect(exec.heard).toContain('kill cancelled');
    for (const each of [inPackages, waiting, inCell, running]) {
      expect(await each.result).toMatchObject({ status: 'cancelled', message: 'the run was cancelled' });
    }
    expect(site.specs).toHaveLength(1);
    expect(site.cells[0]?.codes).toHaveLength(1);
  });

  test('waits for the one before it, as long as there is room', async () => {
    all = benches.open({ queue: 1 });
    site.program = () => {};
    const bench = all.open(ME);
    const first = bench.run(request('1'));
    const second = bench.run(request('2'));
    expect(() => bench.run(request('3'))).toThrow(/wait/);
    (await benches.nextCode(1)).exit();
    await first.result;
    (await benches.nextCode(2)).exit();
    await second.result;
    expect(bench.findRun(first.id)).toBe(first);
    expect(() => bench.findRun('run_0')).toThrow(/no run/);
  });

  test('is forgotten when there are too many', async () => {
    all = benches.open({ runsKept: 2 });
    const bench = all.open(ME);
    const ids: string[] = [];
    for (let count = 0; count < 4; count++) {
      const each = bench.run(request(''));
      ids.push(each.id);
      await each.result;
    }
    expect(bench.runs().map(({ id }) => id)).toEqual(ids.slice(1));
  });

  test('[MC-12] tells its progress, at most ten times a second', async () => {
    site.program = () => {};
    const started = all.open(ME).run(request(''));
    const seen: RunProgress[] = [];
    const stop = started.watch((progress) => seen.push(progress));
    const exec = await benches.nextCode();
    for (let count = 0; count < 200; count++) {
      exec.say(`${count}\n`);
      await nextTurn();
    }
    await vi.waitFor(() => expect(seen.at(-1)?.message).toContain('199'));
    expect(seen.length).toBeLessThan(50);
    stop();
    const before = seen.length;
    exec.say('more');
    exec.exit();
    await started.result;
    expect(seen.length).toBe(before);
  });

  test('has its input, and keeps both ends of a long output', async () => {
    all = benches.open({ outputKeptBytes: 1024 });
    site.program = (exec) => {
      for (let count = 0; count < 1000; count++) exec.say(`line ${count}\n`);
      exec.exit();
    };
    const result = await run(all.open(ME), '', { stdin: 'in' });
    expect(result.stdout).toMatch(/^line 0\n[\s\S]*bytes cut[\s\S]*line 999\n$/);
    expect(result.stdoutBytes).toBeGreaterThan(result.stdoutCut);
    expect(site.cells[0]?.codes[0]).toMatchObject({ stdin: 'in', heard: ['eof'] });
  });
});
