import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import { ImageStore } from '../../src/drivers/docker/images.ts';
import type { TarEntry } from '../../src/lib/tar-archive.ts';
import { engineHost, whyNoEngine } from '../support/docker-engine.ts';
import { removeImage } from '../support/engine-images.ts';
import { LoopbackRegistry } from '../support/loopback-registry.ts';
import { testThatNeeds } from '../support/needs.ts';

const RECIPES = fileURLToPath(new URL('../../images', import.meta.url));
const host = engineHost();
const test = testThatNeeds(whyNoEngine());
const quiet = (): void => {};

let engine: Engine;
let registry: LoopbackRegistry;
let store: ImageStore;
const pulled: string[] = [];
beforeEach(async () => {
  engine = await Engine.connect(findEndpoint({ host }));
  registry = await LoopbackRegistry.start();
  const languages = { ruby: { ...BUILT_IN_LANGUAGES['ruby'], image: `${registry.host}/team/app:1` } };
  store = new ImageStore(engine, {
    recipes: RECIPES,
    languages: languages as typeof BUILT_IN_LANGUAGES,
    pullSilenceMs: 2000,
    progressEveryMs: 200,
  });
});
afterEach(async () => {
  if (host !== undefined) for (const name of pulled.splice(0)) await removeImage(engine, name);
  await registry[Symbol.asyncDispose]();
});

const file = (path: string, size: number): TarEntry => ({ path, content: randomBytes(size), mode: 0o644 });
function publish(tag = '1'): { name: string; byDigest: string } {
  const image = registry.publish('team/app', tag, [
    [file('one', 6_000_000)],
    [file('two', 2_000_000)],
    [file('a/b', 9)],
  ]);
  pulled.push(image.name, image.byDigest);
  return image;
}

describe('a pull', () => {
  test('tells how far it is, and leaves the image there', async () => {
    const { name } = publish();
    registry.misbehaviours.set('/blobs/', { pauseMs: 10 });
    const lines: string[] = [];
    await store.ensure(name, (text) => lines.push(text));
    expect(await store.has(name)).toBe(true);
    expect(lines[0]).toBe(`pulling ${name}: asking the registry`);
    expect(lines.at(-1)).toMatch(/^pulled .*: 8\.0 MB in [\d.]+ s$/);
    const percents = lines
      .flatMap((line) => /: (\d+)% \([\d.]+ .?B of 8\.0 MB\)/.exec(line)?.[1] ?? [])
      .map(Number);
    expect(percents.length).toBeGreaterThan(1);
    expect(percents).toEqual(percents.toSorted((a, b) => a - b));
    lines.length = 0;
    await store.ensure(name, (text) => lines.push(text));
    expect(lines).toEqual([]);
  });

  test('by digest', async () => {
    const { byDigest } = publish();
    await store.ensure(byDigest, quiet);
    expect(await store.has(byDigest)).toBe(true);
  });

  test('without a tag means latest, and never all', async () => {
    publish('1');
    publish('latest');
    await store.ensure(`${registry.host}/team/app`, quiet);
    expect(await store.has(`${registry.host}/team/app:latest`)).toBe(true);
    expect(await store.has(`${registry.host}/team/app:1`)).toBe(false);
    expect(registry.countRequests('/tags/')).toBe(0);
  });

  test('is one for all who want the image at the same time', async () => {
    const { name } = publish();
    registry.misbehaviours.set('/blobs/', { pauseMs: 5 });
    await Promise.all(Array.from({ length: 5 }, () => store.ensure(name, quiet)));
    expect(registry.countRequests('HEAD /v2/team/app/manifests/1')).toBe(1);
  });

  test('[CX-08] of a tag that does not exist names the image and the setting, and is not repeated at once', async () => {
    const name = `${registry.host}/team/app:1`;
    for (let attempt = 0; attempt < 3; attempt++) {
      await expect(store.ensure(name, quiet)).rejects.toMatchObject({
        code: 'IMAGE_UNAVAILABLE',
        message: `image ${name} cannot be pulled: manifest unknown`,
        hint: 'There is no such image: correct languages.ruby.image; or build one of ours: hotcell build ruby',
      });
    }
    expect(registry.countRequests('GET /v2/team/app/manifests/1')).toBe(1);
  });

  test('[CX-08] of an image for another processor says so', async () => {
    await expect(store.ensure(registry.publishForeign('foreign', '1'), quiet)).rejects.toMatchObject({
      message: expect.stringContaining('no matching manifest for linux/'),
      hint: expect.stringContaining('not made for the processor'),
    });
  });

  test.for(['/manifests/', '/blobs/'])('[CX-08] that hangs in %s ends after the silence', async (part) => {
    const { name } = publish();
    registry.misbehaviours.set(part, part === '/blobs/' ? { hangAfterBytes: 300_000 } : 'hang');
    const begun = performance.now();
    await expect(store.ensure(name, quiet)).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: `image ${name} cannot be pulled: nothing came for 2 s`,
      hint: expect.stringContaining(`The registry ${registry.host} or the network hangs`),
    });
    expect(performance.now() - begun).toBeLessThan(20_000);
    expect(await store.has(name)).toBe(false);
    // Nothing stays stuck in the engine: a registry that has recovered serves.
    registry.misbehaviours.clear();
    await store.pull(name, quiet);
    expect(await store.has(name)).toBe(true);
  });

  test('[CX-08] from a registry that fails blames the registry', async () => {
    const { name } = publish();
    registry.misbehaviours.set('/manifests/', 'fail');
    await expect(store.ensure(name, quiet)).rejects.toMatchObject({
      message: `image ${name} cannot be pulled: received unexpected HTTP status: 500 Internal Server Error`,
      hint: expect.stringContaining(`The registry ${registry.host} has a failure of its own`),
    });
  });

  test('[CX-08] from a registry that is not there blames the network', async () => {
    await expect(store.ensure('127.0.0.1:1/team/app:1', quiet)).rejects.toMatchObject({
      message: expect.stringMatching(
        /^image 127\.0\.0\.1:1\/team\/app:1 cannot be pulled: .*connection refused$/,
      ),
      hint: expect.stringMatching(
        /^Check that the engine reaches 127\.0\.0\.1:1: .*\nWithout network bring it from/,
      ),
    });
  });
});
