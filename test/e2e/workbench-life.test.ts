import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KeptWorkbenches } from '../../src/workbench/workbenches.ts';
import type { CodeRequest, CodeResult, CodeRun, Workbench } from '../../src/workbench/api.ts';
import { waitFor } from '../support/leftovers.ts';
import { describeEach, FRESH_WAYS } from '../support/served-by.ts';
import { killCell, listCells, waitUntilNothingIsLeft } from '../support/workbench-cells.ts';
import {
  makeSiteWords,
  openFromWords,
  removeSiteFolders,
  request,
  type SiteWords,
} from '../support/workbench-site.ts';

const ME = { tenant: 'me' };

const run = (bench: Workbench, code: string, more: Partial<CodeRequest> = {}): Promise<CodeResult> =>
  bench.run(request(code, more)).result;

const untilSaid = (started: CodeRun, word: string): Promise<void> =>
  waitFor(`the code says ${word}`, () => started.output().stdout.includes(word));

describeEach(FRESH_WAYS, (way) => {
  let words: SiteWords;
  let opened: KeptWorkbenches;
  let bench: Workbench;

  beforeAll(async () => {
    await way.prepare();
    words = makeSiteWords(way.driver);
    opened = await openFromWords(words);
    bench = opened.open(ME);
  });
  afterAll(async () => {
    await opened.close();
    await waitUntilNothingIsLeft(words);
    removeSiteFolders(words);
  });

  const currentCell = async (): Promise<string | undefined> => (await listCells(words))[0];

  test('[MC-08] every run has the same cell, and files of one are there in the next', async () => {
    const first = await run(bench, 'await Bun.write("note.txt", "kept")');
    const second = await run(bench, 'console.log(await Bun.file("note.txt").text())');
    expect(second).toMatchObject({ stdout: 'kept\n', cellId: first.cellId });
    expect(await listCells(words)).toHaveLength(1);
  });

  test('[MC-08] calls that come first at the same time make one cell', async () => {
    const other = opened.open(ME);
    const before = await listCells(words);
    const [one, two] = await Promise.all([
      run(other, 'console.log(1)'),
      run(other, 'console.log(2)'),
      other.files.write([{ path: 'a.txt', content: Buffer.from('a') }]),
      other.files.read('.'),
    ]);
    expect([one.stdout, two.stdout, one.cellId]).toEqual(['1\n', '2\n', two.cellId]);
    expect((await listCells(words)).length - before.length).toBe(1);
    await other.close();
    expect(await listCells(words)).toEqual(before);
  });

  test('[MC-08] a cell that was killed between two runs is replaced within the call', async () => {
    const before = await run(bench, 'await Bun.write("lost.txt", "x")');
    await killCell(words, before.cellId ?? '');
    const after = await run(bench, 'console.log(await Bun.file("lost.txt").exists())');
    expect(after).toMatchObject({ status: 'ok', stdout: 'false\n' });
    expect(after.cellId).not.toBe(before.cellId);
    expect(after.warnings).toEqual([expect.stringContaining('lost')]);
    expect((await run(bench, '')).warnings).toEqual([]);
  });

  test('[MC-08] a cell that is killed during a run: what was said is kept, and the next call works', async () => {
    const started = bench.run(request('console.log("begun"); await Bun.sleep(60_000)'));
    await untilSaid(started, 'begun');
    await killCell(words, (await currentCell()) ?? '');
    expect(await started.result).toMatchObject({
      status: 'failed',
      stdout: 'begun\n',
      exitCode: undefined,
      message: expect.stringContaining('lost'),
    });
    expect(await run(bench, 'console.log("again")')).toMatchObject({ status: 'ok', stdout: 'again\n' });
  });

  test('[MC-08] a cell that is killed before the code said anything: it runs again', async () => {
    const quiet =
      'await Bun.write("wait", ""); while (!(await Bun.file("/packages/go").exists())) await Bun.sleep(20);';
    const started = bench.run(request(`${quiet} console.log("said")`));
    const seen = async (): Promise<boolean> => {
      const folder = await bench.files.read('.');
      return folder.kind === 'folder' && folder.entries.some(({ name }) => name === 'wait');
    };
    await waitFor('the code has begun', seen);
    await killCell(words, (await currentCell()) ?? '');
    writeFileSync(join(words.dataDir, 'packages/go'), '');
    expect(await started.result).toMatchObject({ status: 'ok', stdout: 'said\n' });
  });

  test('[MC-12] cancel while it runs, and while it waits for another', async () => {
    const before = await run(bench, '');
    const running = bench.run(request('console.log("begun"); await Bun.sleep(60_000)'));
    const waiting = bench.run(request('console.log("never")'));
    await untilSaid(running, 'begun');
    expect(waiting.phase).toBe('waiting');
    await waiting.cancel();
    expect(await waiting.result).toMatchObject({ status: 'cancelled', stdout: '' });
    expect(running.phase).toBe('running');
    await running.cancel();
    expect(await running.result).toMatchObject({ status: 'cancelled', stdout: 'begun\n' });
    expect((await run(bench, '')).cellId).toBe(before.cellId);
  });

  test('[MC-12] cancel while the cell starts: nothing runs, and the cell is there for the next', async () => {
    const other = opened.open(ME);
    const starting = other.run(request('console.log("never")'));
    await waitFor('the cell starts', () => starting.phase === 'cell');
    await starting.cancel();
    expect(await starting.result).toMatchObject({ status: 'cancelled', stdout: '' });
    expect(await run(other, 'console.log("ran")')).toMatchObject({ status: 'ok', stdout: 'ran\n' });
    await other.close();
  });

  test('[MC-09] nobody uses it for a while: its cell goes, and its name is known to have expired', async () => {
    const brief = makeSiteWords(way.driver, { idleMs: 700, sweepMs: 50 });
    const site = await openFromWords(brief);
    try {
      const idle = site.open(ME);
      // As long as it runs it is in use.
      const { status, cellId } = await run(idle, 'await Bun.sleep(1500)');
      expect(status).toBe('ok');
      const isThere = async (): Promise<boolean> =>
        (await listCells(brief)).some((id) => id.startsWith(cellId ?? 'none'));
      expect(await isThere()).toBe(true);
      await waitFor('its cell is gone', async () => !(await isThere()));
      expect(() => site.find(ME, idle.id)).toThrow(/expired/);
      expect(() => site.find({ tenant: 'other' }, idle.id)).toThrow(/no such session/);
      expect(() => idle.run(request(''))).toThrow(/expired/);
    } finally {
      await site.close();
      removeSiteFolders(brief);
    }
  });

  test('[MC-09] closing ends what runs and leaves nothing', async () => {
    const other = opened.open(ME);
    const before = await listCells(words);
    const running = other.run(request('console.log("begun"); await Bun.sleep(60_000)'));
    await untilSaid(running, 'begun');
    const waiting = other.run(request(''));
    await Promise.all([other.close(), other.close()]);
    expect(await running.result).toMatchObject({ status: 'cancelled', message: 'the session was closed' });
    expect(await waiting.result).toMatchObject({ status: 'cancelled' });
    expect(await listCells(words)).toEqual(before);
    expect(() => opened.find(ME, other.id)).toThrow(/no such session/);
  });
});
