import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test as plainTest } from 'vitest';
import { Limits } from '../../src/core/limits.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import { ImageStore } from '../../src/drivers/docker/images.ts';
import { OciDriver } from '../../src/drivers/oci/driver.ts';
import { AGENT_AT } from '../../src/fleet/agent/agent-folder.ts';
import { pinnedAgent } from '../../src/fleet/agent/agent-package.ts';
import { runInCell } from '../../src/fleet/worker/run-in-cell.ts';
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
import { holdWorkerImage } from '../support/fleet-worker-image.ts';
import { testThatNeeds, whyNotOci } from '../support/needs.ts';
import { ociOptions } from '../support/package-site.ts';
import { makeStateDirectory, removeFolders } from '../support/server.ts';
import { MAIN } from '../support/command.ts';

const RECIPES = fileURLToPath(new URL('../../images', import.meta.url));
const IMAGE = 'mahabharatha-worker:latest';
const KEPT = 'hotcell-test-kept-worker:latest';
const { version: VERSION } = pinnedAgent({ recipe: join(RECIPES, 'mahabharatha-worker') });
const test = testThatNeeds(whyNoEngine());
const state = makeStateDirectory();
const ociTest = testThatNeeds(await whyNotOci(ociOptions(state)));

let engine: Engine;
let home = '';
/** Ours may be somebody's own engine, with an image of this name. */
let before: string | undefined;
const derived: string[] = [];
const held = new AsyncDisposableStack();

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'hotcell-fleet-image-'));
  if (whyNoEngine() !== undefined) return;
  await holdWorkerImage(held);
  await ensureBaseImage(engineApi().socket);
  engine = await Engine.connect(findEndpoint({ host: engineHost() }));
  before = await imageId(engine, IMAGE);
  if (before !== undefined) await tagImage(engine, before, KEPT);
  await removeImage(engine, IMAGE);
}, 900_000);
afterAll(async () => {
  rmSync(home, { recursive: true });
  removeFolders(state);
  if (whyNoEngine() !== undefined) return;
  await removeImage(engine, IMAGE);
  if (before !== undefined) {
    await tagImage(engine, before, IMAGE);
    await removeImage(engine, KEPT);
  }
  for (const name of derived) await removeImage(engine, name);
  await removeUnnamedImages(engine);
  await held.disposeAsync();
});

/** A secret of the machine that builds, which must not get into anything. */
const SECRET = 'hotcell-test-secret-4711';

/** The npm of this machine with its own settings, though the home is another. */
const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  HOME: home,
  npm_config_userconfig: process.env['npm_config_userconfig'] ?? join(homedir(), '.npmrc'),
  npm_config_cache: process.env['npm_config_cache'] ?? join(homedir(), '.npm'),
  DOCKER_HOST: engineHost() ?? '',
  ANTHROPIC_API_KEY: SECRET,
  'npm_config_//registry.example/:_authToken': SECRET,
});

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[], env: NodeJS.ProcessEnv = environment()): Promise<Ran> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: home,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  }
  const status = await new Promise<number>((resolve) => child.on('close', (code) => resolve(code ?? -1)));
  return { status, ...output };
}

const mahabharatha = (...args: readonly string[]): Promise<Ran> => run(['mahabharatha', ...args]);

describe('hotcell fleet build', () => {
  test('[FL-14] makes the image of the workers, with progress', async () => {
    const { status, stdout, stderr } = await mahabharatha('build', '--base', BASE_IMAGE, '--json');
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      driver: 'docker',
      image: IMAGE,
      id: expect.stringMatching(/^sha256:/),
      base: BASE_IMAGE,
      platform: expect.stringMatching(/^linux\//),
      size_bytes: expect.any(Number),
      agent_version: VERSION,
      was_there: false,
    });
    expect(stderr).toMatch(/^fleet: fetching @anthropic-ai\/claude-code-linux-\w+ [\d.]+ with npm$/m);
    expect(stderr).toMatch(/^fleet: building mahabharatha-worker:latest: Step 1\/\d+ : ARG BASE=/m);
  }, 600_000);

  test('[FL-14] Claude Code runs in it, as a user that is not root and without network', async () => {
    expect(await runInImage(engine, IMAGE, ['claude', '--version'])).toBe(`${VERSION} (Claude Code)`);
    const programs =
      'id; for p in node npm git python3 pip3 perl bash; do command -v $p || echo no $p; done; pwd';
    const said = await runInImage(engine, IMAGE, ['bash', '-c', programs]);
    expect(said).toMatch(/^uid=1000\(runner\) gid=1000\(runner\) groups=1000\(runner\)\n/);
    expect(said).not.toContain('no ');
    expect(
      await runInImage(engine, IMAGE, [
        'bash',
        '-c',
        'test -s /etc/ssl/certs/ca-certificates.crt && echo yes',
      ]),
    ).toBe('yes');
  });

  test('[FL-14] nobody in it can change the agent, and nothing is left of its trial', async () => {
    const look =
      'ls -ld /opt/mahabharatha/agent/package/claude /opt/mahabharatha/agent | cut -d" " -f1,3,4; ls -A /tmp /root';
    expect(await runInImage(engine, IMAGE, ['bash', '-c', look])).toMatch(
      /^drwxr-xr-x\.? root root\n-rwxr-xr-x\.? root root\n(ls: cannot open directory '\/root': Permission denied\n)?\/tmp:$/,
    );
  });

  test('[FL-14, FL-08] nothing of the machine that built it is in it', async () => {
    type Image = { Config: { Env: string[] } };
    type Step = { CreatedBy: string };
    const { Config } = await engineApi().call<Image>('GET', `/images/${IMAGE}/json`);
    expect(Config.Env.map((entry) => entry.replace(/=.*/s, '')).toSorted()).toEqual([
      'DISABLE_AUTOUPDATER',
      'HOME',
      'PATH',
    ]);
    const history = await engineApi().call<Step[]>('GET', `/images/${IMAGE}/history`);
    const steps = history.map(({ CreatedBy }) => CreatedBy).join('\n');
    expect(steps).toMatch(/ADD file:\w+ in \/opt\/mahabharatha\/agent\//);
    expect(steps).not.toMatch(/registry|proxy|token|secret/i);
    const find =
      "find / -xdev \\( -name .npmrc -o -name npmrc -o -name '.npm' -o -name agent.tgz -o -name prepare.sh \\) 2>/dev/null; env";
    const found = await runInImage(engine, IMAGE, ['bash', '-c', find]);
    expect(found.split('\n').filter((line) => line.startsWith('/') && !line.startsWith('/usr/'))).toEqual([]);
    expect(found).not.toContain(SECRET);
  });

  test('[FL-14] what is there is not built again, nor fetched', async () => {
    const id = await imageId(engine, IMAGE);
    // No npm could be found: it is not looked for.
    const env = { ...environment(), PATH: home };
    const { status, stdout, stderr } = await run(['mahabharatha', 'build', '--base', BASE_IMAGE], env);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toBe(`✓ ${IMAGE} from ${BASE_IMAGE} with Claude Code ${VERSION}, as it was\n`);
    expect(await imageId(engine, IMAGE)).toBe(id);
  });

  test('[FL-14] hotcell build makes the same image, and hotcell images shows it', async () => {
    const built = await run(['build', 'mahabharatha-worker', '--base', BASE_IMAGE]);
    expect(built).toMatchObject({ status: 0, stderr: '' });
    expect(built.stdout).toMatch(/^✓ mahabharatha-worker:latest from hotcell-test-base:latest, [\d.]+ .B\n$/);
    const { stdout } = await run(['images']);
    expect(stdout).toMatch(/^- +mahabharatha-worker:latest +yes +[\d.]+ .B +hotcell fleet build$/m);
    const rows = JSON.parse((await run(['images', '--json'])).stdout) as unknown[];
    expect(rows.at(-1)).toMatchObject({
      language: null,
      image: IMAGE,
      present: true,
      built: true,
      outdated: false,
    });
  });

  test('[FL-14] a base that lacks something is refused in words', async () => {
    derived.push('hotcell-test-gitless:latest');
    await deriveImage(engine, 'hotcell-test-gitless:latest', 'rm -r /usr/bin/git /etc/apt/sources.list*');
    const { status, stderr } = await mahabharatha('build', '--base', 'hotcell-test-gitless:latest');
    expect(status).toBe(125);
    expect(stderr).toContain(
      'this base lacks git, and apt-get could not install it; has the build no network?',
    );
  });

  test('[FL-14] nobody else can give us this image', async () => {
    const store = new ImageStore(engine, { recipes: RECIPES, languages: {} });
    await expect(store.pull(IMAGE, () => {})).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      hint: 'Build it: hotcell build mahabharatha-worker',
    });
  });

  test.for([
    [['--agent-version', '2 || curl evil'], 2, '"2 || curl evil" is no version of the agent'],
    [['--agent-version', '0.0.999', '--rebuild'], 125, 'npm pack failed: '],
    [['--platform', 'linux/mips64'], 125, 'cannot be pulled'],
  ] as const)('[FL-14] %j is refused', async ([args, code, message]) => {
    const { status, stderr } = await mahabharatha('build', '--base', BASE_IMAGE, ...args);
    expect(stderr).toContain(message);
    expect(status).toBe(code);
  });
});

plainTest('[FL-14] the pinned agent is the one of the Dockerfile', () => {
  const dockerfile = readFileSync(join(RECIPES, 'mahabharatha-worker/Dockerfile'), 'utf8');
  expect(/^ARG AGENT_VERSION=(.*)$/m.exec(dockerfile)?.[1]).toBe(VERSION);
});

describe('hotcell fleet build --driver oci', () => {
  const agents = (): string => join(home, '.bun-runner-mcp/agents/claude-code');

  plainTest(
    '[FL-14] installs the agent once, for cells without an image',
    async () => {
      const first = await mahabharatha('build', '--driver', 'oci', '--json');
      expect({ status: first.status, stderr: first.status === 0 ? '' : first.stderr }).toEqual({
        status: 0,
        stderr: '',
      });
      const reply = JSON.parse(first.stdout) as { folder: string };
      expect(reply).toEqual({
        driver: 'oci',
        folder: join(agents(), readdirSync(agents())[0] ?? ''),
        agent_version: VERSION,
        was_there: false,
      });
      expect(readdirSync(agents())).toHaveLength(1);
      expect(statSync(join(reply.folder, 'package/claude')).mode & 0o777).toBe(0o755);
      const again = await run(['mahabharatha', 'build', '--driver', 'oci', '--json'], {
        ...environment(),
        PATH: home,
      });
      expect(JSON.parse(again.stdout)).toMatchObject({ was_there: true });
    },
    300_000,
  );

  ociTest(
    '[FL-14] Claude Code runs in such a cell, as a user that is not root and without network',
    async () => {
      const driver = new OciDriver(ociOptions(state));
      try {
        const cell = await driver.create({
          name: 'agent',
          kind: 'worker',
          limits: Limits.parse({ memoryBytes: 1024 ** 3, processes: 256 }),
          folders: [{ name: 'agent', folder: join(agents(), readdirSync(agents())[0] ?? ''), at: AGENT_AT }],
        });
        const ran = await runInCell(cell, {
          argv: ['bash', '-c', 'id -u; {agent}/package/claude --version; touch {agent}/x'],
          env: { HOME: '{workdir}' },
        });
        expect(ran).toMatchObject({ stdout: expect.stringMatching(/^[1-9]\d*\n/), code: 1 });
        expect(ran.stdout).toContain(`${VERSION} (Claude Code)`);
        expect(ran.stderr).toContain('Read-only file system');
        await cell.dispose();
      } finally {
        await driver.close();
      }
    },
  );
});
