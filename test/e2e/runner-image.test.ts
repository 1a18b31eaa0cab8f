import { afterAll, beforeAll, expect } from 'vitest';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import type { RunProgress } from '../../src/workbench/api.ts';
import { engineHost, requireImages, whyNoEngine } from '../support/docker-engine.ts';
import { imageId, removeImage, tagImage } from '../support/engine-images.ts';
import { testThatNeeds } from '../support/needs.ts';
import { waitUntilNothingIsLeft } from '../support/workbench-cells.ts';
import { makeSiteWords, openFromWords, removeSiteFolders, request } from '../support/workbench-site.ts';

const test = testThatNeeds(whyNoEngine());
const IMAGE = 'bun-runner-base:latest';
const KEPT = 'hotcell-test-kept-runner:latest';

let engine: Engine;
let before: string | undefined;

beforeAll(async () => {
  if (whyNoEngine() !== undefined) return;
  await requireImages();
  engine = await Engine.connect(findEndpoint({ host: engineHost() }));
  before = await imageId(engine, IMAGE);
  if (before !== undefined) await tagImage(engine, before, KEPT);
});
afterAll(async () => {
  if (before === undefined) return;
  await tagImage(engine, before, IMAGE);
  await removeImage(engine, KEPT);
});

test('[MC-05, MC-12] a missing base image is built within the call, once and with progress', async () => {
  await removeImage(engine, IMAGE);
  expect(await imageId(engine, IMAGE)).toBeUndefined();
  const words = makeSiteWords('docker');
  const opened = await openFromWords(words);
  try {
    const benches = [1, 2].map(() => opened.open({ tenant: 'me' }));
    // Nothing is built before somebody runs something.
    expect(await imageId(engine, IMAGE)).toBeUndefined();
    const runs = benches.map((bench) => bench.run(request('console.log(process.env.BUN_INSTALL_CACHE_DIR)')));
    const seen: RunProgress[] = [];
    runs[0]?.watch((progress) => seen.push(progress));
    const results = await Promise.all(runs.map((run) => run.result));
    expect(results).toMatchObject([
      { status: 'ok', stdout: '/packages\n', phases: { image: expect.any(Number) } },
      { status: 'ok', stdout: '/packages\n' },
    ]);
    const told = seen.filter(({ phase }) => phase === 'image').map(({ message }) => message);
    expect(told.join('\n')).toMatch(/building bun-runner-base:latest/);
    expect(await imageId(engine, IMAGE)).toMatch(/^sha256:/);
    const built = await imageId(engine, IMAGE);
    expect((await benches[0]?.run(request('')).result)?.phases.image).toBeUndefined();
    expect(await imageId(engine, IMAGE)).toBe(built);
  } finally {
    await opened.close();
    await waitUntilNothingIsLeft(words);
    removeSiteFolders(words);
  }
});

test('[MC-12] cancel while the image is built: the caller is free at once, and the next run has it', async () => {
  await removeImage(engine, IMAGE);
  const words = makeSiteWords('docker');
  const opened = await openFromWords(words);
  try {
    const bench = opened.open({ tenant: 'me' });
    const run = bench.run(request('console.log("never")'));
    await new Promise<void>((resolve) => {
      run.watch(({ phase }) => {
        if (phase === 'image') resolve();
      });
    });
    await run.cancel();
    expect(await run.result).toMatchObject({ status: 'cancelled', stdout: '' });
    expect(await bench.run(request('console.log("ran")')).result).toMatchObject({ stdout: 'ran\n' });
  } finally {
    await opened.close();
    await waitUntilNothingIsLeft(words);
    removeSiteFolders(words);
  }
});
