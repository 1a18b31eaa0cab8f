import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import { ImageStore } from '../../src/drivers/docker/images.ts';
import { BUILDABLE, toBuiltTag } from '../../src/drivers/images/recipe.ts';
import { BASE_IMAGE, ensureBaseImage } from '../support/base-image.ts';
import { engineApi, engineHost, whyNoEngine } from '../support/docker-engine.ts';
import {
  deriveImage,
  imageId,
  removeImage,
  removeUnnamedImages,
  runInImage,
  tagImage,
} from '../support/engine-images.ts';
import { COMPILE_CACHE, MAIN } from '../support/command.ts';
import { testThatNeeds } from '../support/needs.ts';

const RECIPES = fileURLToPath(new URL('../../images', import.meta.url));
const BASE = BASE_IMAGE;
const host = engineHost();
const test = testThatNeeds(whyNoEngine());

let engine: Engine;
let folder = '';
/** Ours may be somebody's own engine, with images of these names. */
const before = new Map<string, string>();
const toKeptName = (name: string): string => `hotcell-test-kept-${name}`;
const derived: string[] = [];
const quiet = (): void => {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-images-'));
  engine = await Engine.connect(findEndpoint({ host }));
  if (host === undefined) return;
  await ensureBaseImage(engineApi().socket);
  for (const name of BUILDABLE.map(toBuiltTag)) {
    const id = await imageId(engine, name);
    if (id === undefined) continue;
    before.set(name, id);
    // A second name keeps it from going with the first.
    await tagImage(engine, id, toKeptName(name));
  }
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  if (host === undefined) return;
  for (const [name, id] of before) {
    await tagImage(engine, id, name);
    await removeImage(engine, toKeptName(name));
  }
  const ours = [...BUILDABLE.map(toBuiltTag), ...derived].filter((name) => !before.has(name));
  for (const name of ours) await removeImage(engine, name);
  await removeUnnamedImages(engine);
});

/** The real command, with nothing in its environment but the engine. Not awaited in place: the registry runs in here. */
async function hotcell(
  ...args: readonly string[]
): Promise<{ status: number; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: { DOCKER_HOST: host ?? '', ...COMPILE_CACHE },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  }
  const status = await new Promise<number>((resolve) => child.on('close', (code) => resolve(code ?? -1)));
  return { status, ...output };
}

async function derive(tag: string, command: string): Promise<string> {
  derived.push(tag);
  await deriveImage(engine, tag, command);
  return tag;
}

const PROGRAMS: Readonly<Record<(typeof BUILDABLE)[number], readonly string[]>> = {
  python: ['python3', '-c', 'print(6 * 7)'],
  ruby: ['ruby', '-e', 'puts 6 * 7'],
  node: ['node', '-p', '6 * 7'],
  bun: ['bun', '--eval', 'console.log(6 * 7)'],
  shell: ['bash', '-c', 'echo $((6 * 7))'],
  'bun-runner-base': ['bun', '--eval', 'console.log(6 * 7)'],
};

describe('hotcell build', () => {
  test('all images from one base, without network', async () => {
    const { status, stdout, stderr } = await hotcell('build', '--base', BASE, '--json');
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(
      BUILDABLE.map((name) => ({
        name,
        image: toBuiltTag(name),
        id: expect.stringMatching(/^sha256:/),
        base: BASE,
        platform: expect.stringMatching(/^linux\//),
        size_bytes: expect.any(Number),
      })),
    );
    // Off a terminal progress is plain lines.
    expect(stderr).toMatch(/^hotcell: building hotcell-python:latest: Step 1\/\d+ : ARG BASE=/m);
    expect(stderr.includes('\u001b')).toBe(false);
  });

  test.for([...BUILDABLE])('%s runs, as a user that is not root', async (name) => {
    const image = toBuiltTag(name);
    expect(await runInImage(engine, image, PROGRAMS[name])).toBe('42');
    expect(
      await runInImage(engine, image, ['sh', '-c', 'id; pwd; echo "$HOME"; ls -A /tmp; touch /tmp/mine']),
    ).toBe('uid=1000(runner) gid=1000(runner) groups=1000(runner)\n/tmp\n/tmp');
  });

  test('the image says what it is, and from which recipe and base', async () => {
    const store = new ImageStore(engine, { recipes: RECIPES, languages: BUILT_IN_LANGUAGES });
    const { labels = {} } = (await store.find('hotcell-node')) ?? {};
    // What the base says of itself is inherited, and is none of ours.
    expect(labels).toMatchObject({
      'hotcell.base': BASE,
      'hotcell.image': 'node',
      'hotcell.recipe': expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      'org.opencontainers.image.title': 'hotcell-node',
    });
  });

  test('a user of the base who has the number or the name gives way', async () => {
    const base = await derive(
      'hotcell-test-users:latest',
      'useradd -u 1000 -m node && useradd -u 1001 runner && mkdir -p /home/node',
    );
    const store = new ImageStore(engine, { recipes: RECIPES, languages: {} });
    derived.push('hotcell-test-renamed:latest');
    await store.build({ name: 'node', base, tag: 'hotcell-test-renamed:latest' }, quiet);
    expect(
      await runInImage(engine, 'hotcell-test-renamed:latest', [
        'sh',
        '-c',
        'id; getent passwd node 1001 runner',
      ]),
    ).toBe(
      'uid=1000(runner) gid=1000(runner) groups=1000(runner)\nrunner:*:1000:1000:user of the cells:/tmp:/bin/bash',
    );
  });

  test('a base that lacks something is refused in words, with the lines of the step', async () => {
    const base = await derive('hotcell-test-bare:latest', 'rm /usr/local/bin/bun');
    const { status, stdout, stderr } = await hotcell('build', 'bun', '--base', base);
    expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
    expect(stderr).toContain('image hotcell-bun:latest cannot be built from hotcell-test-bare:latest: ');
    expect(stderr).toMatch(
      /\n {2}\| Step 5\/\d+ : RUN .*\n {2}\| prepare.sh: this base lacks bun, and no package of apt-get brings it\n/,
    );
    expect(stderr).toMatch(/\n {2}→ .*hotcell build bun --base IMAGE.*\n$/);
  });

  test('what a package would bring and cannot be installed is named', async () => {
    // Without its sources apt-get fails as it does without network, and at once.
    const base = await derive('hotcell-test-perlless:latest', 'rm -r /usr/bin/perl /etc/apt/sources.list*');
    const { status, stderr } = await hotcell('build', 'shell', '--base', base);
    expect(status).toBe(125);
    expect(stderr).toContain(
      'this base lacks perl, and apt-get could not install it; has the build no network?',
    );
  });

  test('what is missing is installed where the base can', async () => {
    // A stand-in for Alpine's package manager: there is no network to try the real one.
    const apk = '\'#!/bin/sh\\necho "$@" >/apk.log; mv /usr/bin/hidden /usr/bin/perl\\n\'';
    const base = await derive(
      'hotcell-test-apk:latest',
      `mv /usr/bin/perl /usr/bin/hidden && rm /usr/bin/apt-get && printf ${apk} >/sbin/apk && chmod 755 /sbin/apk`,
    );
    const store = new ImageStore(engine, { recipes: RECIPES, languages: {} });
    derived.push('hotcell-test-installed:latest');
    await store.build({ name: 'shell', base, tag: 'hotcell-test-installed:latest' }, quiet);
    expect(await runInImage(engine, 'hotcell-test-installed:latest', ['cat', '/apk.log'])).toBe(
      'add --no-cache perl',
    );
  });

  test('--platform of the engine takes the base that is there', async () => {
    const platform = `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`;
    const { status, stdout, stderr } = await hotcell(
      'build',
      'shell',
      '--base',
      BASE,
      '--platform',
      platform,
      '--json',
    );
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject([
      { name: 'shell', platform: expect.stringContaining(platform) },
    ]);
  });

  test('a base that is nowhere is the failure of a pull, and --base is named', async () => {
    const { status, stderr } = await hotcell('build', 'ruby', '--base', '127.0.0.1:1/nobody:1');
    expect(status).toBe(125);
    expect(stderr).toContain('image 127.0.0.1:1/nobody:1 cannot be pulled: ');
    expect(stderr).toContain('hotcell build ruby --base IMAGE');
  });

  test.for([
    ['pyton', 'there is no image pyton to build; did you mean python?'],
    ['cobol', 'there is no image cobol to build'],
  ])('%s is refused before anything is built', async ([name = '', message]) => {
    const { status, stdout, stderr } = await hotcell('build', name);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toBe(
      `hotcell: ${message}\n  → Name one of python, ruby, node, bun, shell, bun-runner-base, or none to build them all; or mahabharatha-worker.\n`,
    );
  });

  test('a language stands for its recipe', async () => {
    const { status, stdout } = await hotcell('build', 'javascript', '--base', BASE);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^✓ hotcell-node:latest from hotcell-test-base:latest, [\d.]+ .B\n$/);
  });
});

describe('hotcell images', () => {
  test('shows what was built, and what is not there with the command that gets it', async () => {
    const settings =
      'languages: { lua: { extension: lua, command: [lua, "{filepath}"], image: "nobody/lua:5" } }\n';
    writeFileSync(join(folder, 'lua.yaml'), settings);
    const { status, stdout, stderr } = await hotcell('images', '--config', 'lua.yaml');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '));
    expect(lines[0]).toBe('LANGUAGE | IMAGE | PRESENT | SIZE | GET IT WITH');
    expect(lines[1]).toMatch(/^python \| hotcell-python:latest \| yes \| [\d.]+ .B \| hotcell build python$/);
    expect(lines[4]).toMatch(/^typescript \| hotcell-bun:latest \| yes \| [\d.]+ .B \| hotcell build bun$/);
    expect(lines[6]).toBe('lua | nobody/lua:5 | no | docker pull nobody/lua:5');
  });

  test('--json has the same for programs, and the default image where nothing was built', async () => {
    await removeImage(engine, 'hotcell-ruby:latest');
    const { status, stdout } = await hotcell('images', '--json');
    expect(status).toBe(0);
    const rows = JSON.parse(stdout) as unknown[];
    expect(rows[0]).toEqual({
      language: 'python',
      image: 'hotcell-python:latest',
      present: true,
      built: true,
      outdated: false,
      id: expect.stringMatching(/^sha256:/),
      size_bytes: expect.any(Number),
      created: expect.stringMatching(/^\d{4}-/),
      commands: ['hotcell build python'],
    });
    expect(rows[1]).toMatchObject({
      language: 'ruby',
      image: 'ruby:3.2-slim',
      present: false,
      id: null,
      commands: ['hotcell build ruby', 'docker pull ruby:3.2-slim'],
    });
  });

  test('an image from an older recipe is outdated', async () => {
    const changed = join(folder, 'images');
    cpSync(RECIPES, changed, { recursive: true });
    writeFileSync(join(changed, 'prepare.sh'), '# another\n');
    const outdated = async (recipes: string): Promise<string[]> => {
      const entries = await new ImageStore(engine, { recipes, languages: {} }).list();
      return entries.filter((entry) => entry.outdated).map((entry) => entry.name);
    };
    expect(await outdated(RECIPES)).toEqual([]);
    expect(await outdated(changed)).toContain('hotcell-python:latest');
  });

  test('an engine that is not there is named, with what to do', async () => {
    const { status, stderr } = await hotcell('images', '--set', 'docker.host=unix:///nowhere/docker.sock');
    expect(status).toBe(125);
    expect(stderr).toMatch(
      /^hotcell: the engine at unix:\/\/\/nowhere\/docker\.sock cannot .*ENOENT.*\n {2}→ .*\n$/,
    );
  });
});
