import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ScriptedBenches, request } from './scripted-benches.double.ts';
import type { ScriptedSite } from './scripted-site.double.ts';
import type { KeptWorkbenches } from './workbenches.ts';

const ME = { tenant: 'me' };
const OTHER = { tenant: 'other' };

let benches: ScriptedBenches;
let site: ScriptedSite;
let all: KeptWorkbenches;

beforeEach(() => {
  benches = new ScriptedBenches();
  ({ site } = benches);
  all = benches.open();
});
afterEach(() => benches[Symbol.asyncDispose]());

describe('workbenches', () => {
  test('[MC-09] of others are not even named', () => {
    const { id } = all.open(ME);
    expect(all.find(ME, id).id).toBe(id);
    expect(id).toMatch(/^wb_[0-9a-f]{32}$/);
    expect(() => all.find(OTHER, id)).toThrow('there is no such session');
    expect(all.list(OTHER)).toEqual([]);
  });

  test('[MC-09] expire when nobody uses them, and not while code runs', async () => {
    all = benches.open({ idleMs: 1000, sweepMs: 100 });
    site.program = () => {};
    const begin = benches.clock.now();
    const busy = all.open(ME);
    const idle = all.open(ME);
    const started = busy.run(request(''));
    const exec = await benches.nextCode();
    await benches.clock.advance(900);
    expect(idle.expiresAt()).toBe(begin + 1000);
    all.find(ME, idle.id);
    await benches.clock.advance(900);
    expect(all.list(ME)).toHaveLength(2);
    await benches.clock.advance(200);
    expect(all.list(ME).map(({ id }) => id)).toEqual([busy.id]);
    expect(() => all.find(ME, idle.id)).toThrow(/expired/);
    expect(() => all.find(OTHER, idle.id)).toThrow('there is no such session');
    exec.exit();
    await started.result;
    await benches.clock.advance(1100);
    await vi.waitFor(() => expect(site.cells[0]?.isGone).toBe(true));
  });

  test('are bounded in number, for everybody and for one', async () => {
    all = benches.open({ max: 3, maxPerTenant: 2 });
    const mine = [all.open(ME), all.open(ME)];
    expect(() => all.open(ME)).toThrow(expect.objectContaining({ code: 'QUOTA_EXCEEDED' }));
    all.open(OTHER);
    expect(() => all.open(OTHER)).toThrow(expect.objectContaining({ code: 'TOO_BUSY' }));
    await mine[0]?.close();
    all.open(ME);
  });

  test('[MC-09] close: what runs ends, the cell and the folder go, and nothing begins any more', async () => {
    site.program = () => {};
    const bench = all.open(ME);
    const started = bench.run(request(''));
    await benches.nextCode();
    expect(readdirSync(join(benches.folder, 'benches'))).toHaveLength(1);
    await all.close();
    expect(await started.result).toMatchObject({ status: 'cancelled', message: 'the server is stopping' });
    expect(site.cells.every(({ isGone }) => isGone)).toBe(true);
    expect(readdirSync(join(benches.folder, 'benches'))).toEqual([]);
    expect(() => all.open(ME)).toThrow(/stopping/);
    expect(() => bench.run(request(''))).toThrow(/stopping/);
    await expect(bench.files.read('.')).rejects.toThrow(/stopping/);
  });

  test('[MC-09] close while a cell is being made: it goes as soon as it is there', async () => {
    const made = Promise.withResolvers<void>();
    site.beforeCreate = () => made.promise;
    const bench = all.open(ME);
    const started = bench.run(request(''));
    await vi.waitFor(() => expect(site.specs).toHaveLength(1));
    const closing = bench.close();
    expect(await started.result).toMatchObject({ status: 'cancelled' });
    made.resolve();
    await closing;
    expect(site.cells.map(({ isGone }) => isGone)).toEqual([true]);
    expect(existsSync(site.specs[0]?.folders?.[0]?.folder ?? '')).toBe(false);
  });
});
