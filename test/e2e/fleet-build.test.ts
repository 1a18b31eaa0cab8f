import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { Config } from '../../src/app/config/config.ts';
import { findMaker } from '../../src/app/fleet/find-maker.ts';
import { pinnedAgent, toAgentPlatform } from '../../src/fleet/agent/agent-package.ts';
import { engineHost, whyNoEngine } from '../support/docker-engine.ts';
import { NO_ENGINE, mahabharatha } from '../support/fleet-command.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { testThatNeeds } from '../support/needs.ts';

const RECIPES = fileURLToPath(new URL('../../images', import.meta.url));
const dockerTest = testThatNeeds(whyNoEngine());
const ociTest = testThatNeeds(whyNoOci);

/** No cells of oci either. */
const NO_CELLS = { HOTCELL_ROOTFS: '/no/such/folder' };

const stack = new DisposableStack();
afterAll(() => stack.dispose());

/** As an earlier build has left it. */
function withAgent(config: Readonly<Record<string, object>> = {}): FleetRepository {
  const made = stack.use(FleetRepository.make({ tasks: [toTask('A', 1)], config }));
  const { version } = pinnedAgent({ recipe: join(RECIPES, 'mahabharatha-worker') });
  for (const libc of ['glibc', 'musl'] as const) {
    const name = `${version}-${toAgentPlatform(process.arch, libc)}`;
    const folder = join(made.home, '.bun-runner-mcp/agents/claude-code', name, 'package');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'claude'), '');
  }
  return made;
}

test.each([
  { args: ['--driver', 'docker'], env: {} },
  { args: ['--docker'], env: {} },
  { args: ['--base', 'debian'], env: {} },
  { args: [], env: NO_CELLS },
])('[FL-14] build $args without an engine names the driver that needs none', async ({ args, env }) => {
  const { code, stdout, stderr } = await mahabharatha(withAgent(), ['build', ...args], { env });
  expect({ code, stdout }).toEqual({ code: 125, stdout: '' });
  expect(stderr).toContain('the docker driver cannot serve: ');
  expect(stderr).toContain(NO_ENGINE.slice('unix://'.length));
  expect(stderr).toContain('hotcell fleet build --driver oci');
});

ociTest(
  '[FL-14] build without an engine is that of cells without images, as a run would use it',
  async () => {
    const { code, stdout, stderr } = await mahabharatha(withAgent(), ['build', '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ driver: 'oci', was_there: true });
  },
);

dockerTest('[FL-14] with an engine it is the image, whatever else serves', async () => {
  const config = Config.parse({ docker: { host: engineHost() } });
  expect(await findMaker(config, { driver: 'auto' })).toEqual({ driver: 'docker' });
});

dockerTest('[FL-14] build is for the driver that the configuration names', async () => {
  const env = { DOCKER_HOST: engineHost() ?? '' };
  const made = withAgent({ workers: { driver: 'oci' } });
  const { code, stdout } = await mahabharatha(made, ['build', '--json'], { env });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ driver: 'oci' });
});

ociTest('[FL-14] --auto-build without an engine installs the agent for cells without images', async () => {
  const config = { agent: { command: 'claude' } };
  const made = stack.use(FleetRepository.make({ tasks: [toTask('A', 1)], config }));
  const env = {
    ANTHROPIC_API_KEY: 'sk-hotcell-test',
    // Nobody listens there: that it is asked is enough.
    npm_config_registry: 'http://127.0.0.1:9/',
    npm_config_fetch_retries: '0',
  };
  const { code, stderr } = await mahabharatha(made, ['run', '--auto-build'], { env });
  expect(code).toBe(125);
  expect(stderr).toMatch(/^fleet: fetching @anthropic-ai\/claude-code-linux-\S+ \S+ with npm$/m);
  expect(stderr).toContain('npm pack failed: ');
});
