import { globSync, readFileSync } from 'node:fs';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/**
 * The name of a project begins with its tier: `npm test -- --tier cells` runs the projects `cells*`. Tiers follow each
 * other, and in each of them whatever measures the machine comes last, alone.
 */
const TIERS = ['check', 'cells', 'engines', 'agents', 'faults'];
const ALONE_LAST = '-alone';

/** Of the code beside them, but slow: they start real programs, or send floods. */
const SLOW = [
  'src/app/serve.test.ts',
  'src/cli/{cli,session,session/shell,up-log}.test.ts',
  'src/client/{reconnect,terminal-connection}.test.ts',
  'src/fleet/environment/dependencies.test.ts',
  'src/fleet/git/**/*.test.ts',
  'src/fleet/state/{file-lock,orchestrator-lock,state-store}.test.ts',
  'src/fleet/{clean-up,stop-fleet,run/recover}.test.ts',
  'src/http/sessions/{exec-streams,terminal-endurance}.test.ts',
  'src/packages/import-scanner.test.ts',
  'src/policy/{command-rules-hostile,rate-limit}.test.ts',
  'src/sessions/output-log.test.ts',
  'test/forbidden-imports.test.ts',
];

/** They measure what a machine does that does nothing else, or change the images that all use. */
const ALONE = [
  'test/e2e/{figures,fleet-image,idle,images,runner-image}.test.ts',
  'test/faults/endurance.test.ts',
];

const PLACES = ['test/{contract,attacks,e2e}/**/*.test.ts'];
const readsOf = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');
const real = globSync(PLACES, { cwd: import.meta.dirname });
/** The same tests over several drivers: `ways` chooses those of the tier. */
const mixed = real.filter((file) =>
  /describeEach\((?!DOCKER)\w+_WAYS|describeModes\(\[[^\]]*DOCKER/.test(readsOf(file)),
);
/** Whatever else names an engine, or the double of one. */
const ENGINE = /DOCKER_(?:FRESH|SHARED)|support\/(?:docker-engine|podman|apple-|private-engine)/;
const engines = real.filter((file) => !mixed.includes(file) && ENGINE.test(readsOf(file)));

/** With the real agent. Those over several ways leave the one of an engine to a project of its own. */
const agents = globSync('test/agents/**/*.test.ts', { cwd: import.meta.dirname });
const agentsOfEngine = agents.filter((file) => /describeWays\(\[[^\]]*'docker'/.test(readsOf(file)));

/** They exchange modules, which nobody else may get. */
const mocking = globSync('src/**/*.test.ts', { cwd: import.meta.dirname }).filter((file) =>
  /vi\.mock\(/.test(readsOf(file)),
);

/** Against what hangs, and for nothing else: a busy machine takes its time. */
const slow = {
  testTimeout: 300_000,
  hookTimeout: 300_000,
  globalSetup: ['test/support/bundle-command.ts'],
};
const engine = { globalSetup: [...slow.globalSetup, 'test/support/engine-setup.ts'] };
const AGENT_SETUP = 'test/agents/agent-setup.ts';

function toProject(
  name: string,
  workers: 1 | 2 | 3,
  test: NonNullable<TestProjectInlineConfiguration['test']>,
): TestProjectInlineConfiguration {
  const tier = TIERS.findIndex((prefix) => name.startsWith(prefix));
  // The projects of a group run side by side.
  const sequence = { groupOrder: 2 * tier + Number(name.endsWith(ALONE_LAST)) };
  // Each project loads the same modules: what is made of them is kept for all, and for the next time.
  const experimental = { fsModuleCache: true };
  return { test: { ...test, name, maxWorkers: workers, sequence, experimental } };
}

/** Three files at a time, since they wait as much as they work, and one at a time those that measure. */
function toTier(
  name: string,
  test: NonNullable<TestProjectInlineConfiguration['test']>,
): TestProjectInlineConfiguration[] {
  const { include = [], exclude = [] } = test;
  const alone = globSync(ALONE, { cwd: import.meta.dirname });
  const files = globSync(include, { cwd: import.meta.dirname, exclude });
  return [
    toProject(name, 3, { ...slow, ...test, include: files.filter((file) => !alone.includes(file)) }),
    toProject(`${name}${ALONE_LAST}`, 1, {
      ...slow,
      ...test,
      include: files.filter((file) => alone.includes(file)),
    }),
  ];
}

export default defineConfig({
  test: {
    // Time for a private Docker engine to stop.
    teardownTimeout: 60_000,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/support/tier-reporter.ts'],
    projects: [
      toProject('check', 2, {
        include: ['src/**/*.test.ts', 'test/{specification,soak}/**/*.test.ts', 'test/architecture.test.ts'],
        exclude: [...SLOW, ...mocking],
        testTimeout: 30_000,
        // Modules hold no state: loading them again for every file is most of the work.
        isolate: false,
      }),
      toProject('check-isolated', 2, { include: mocking, testTimeout: 30_000 }),
      toProject('cells-slow', 3, { include: SLOW, ...slow }),
      toProject('cells-guest', 3, { include: ['guest/**/*.test.ts'], ...slow }),
      ...toTier('cells', { include: PLACES, exclude: engines, provide: { ways: 'own' } }),
      ...toTier('engines', { include: [...engines, ...mixed], provide: { ways: 'engine' }, ...engine }),
      // One file at a time, each: a start of the agent takes a second of a processor.
      toProject('agents', 1, {
        ...slow,
        include: agents,
        provide: { ways: 'own' },
        globalSetup: [...slow.globalSetup, AGENT_SETUP],
      }),
      toProject('agents-engine', 1, {
        ...slow,
        include: agentsOfEngine,
        provide: { ways: 'engine' },
        globalSetup: [...engine.globalSetup, AGENT_SETUP],
      }),
      ...toTier('faults', { include: ['test/faults/**/*.test.ts'], provide: { ways: 'all' }, ...engine }),
    ],
  },
});
