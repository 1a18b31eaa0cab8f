import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { taskFolder } from '../../src/fleet/names.ts';
import { whyNoCertificates } from '../support/certificates.ts';
import { Api } from '../support/hostile-api.ts';
import type { UsedCredentials } from '../support/hostile-credentials-attack.ts';
import type { HostileFleet } from '../support/hostile-fleet.ts';
import { HostileSite } from '../support/hostile-site.ts';
import { FLEET_WAYS, inspectContainers, prepareWorkers, settingsOf } from '../support/hostile-ways.ts';
import { Watch } from '../support/hostile-watch.ts';
import { describeThatNeeds } from '../support/needs.ts';
import { OCI_FRESH, describeEach } from '../support/served-by.ts';

const SEARCH = 'node hostile-search.ts';
const TASKS = [
  { id: 'credentials-1', verification: SEARCH },
  { id: 'fill', verification: SEARCH },
  { id: 'calm-1', verification: SEARCH },
  { id: 'credentials-2', level: 2, verification: SEARCH },
];
const GATES = [{ name: 'search', command: SEARCH, required: true }];
/** What people have in their environment, and what would be read before anything else. */
const BAIT = [
  'AWS_SECRET_ACCESS_KEY', 'GITHUB_TOKEN', 'GH_TOKEN', 'NPM_TOKEN', 'DATABASE_URL', 'MY_PASSWORD', 'RANDOM_THING',
  'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN', 'MAHABHARATHA_SECRET_TOKEN', 'BASH_FUNC_x', 'HTTPS_PROXY_PASSWORD',
]; // prettier-ignore
/** Harmless for the orchestrator itself, and never for workers. */
const STEERING = {
  LD_LIBRARY_PATH: '/nowhere',
  NODE_PATH: '/nowhere',
  PYTHONSTARTUP: '/nowhere',
  GIT_AUTHOR_NAME: 'Evil',
  BASH_ENV: '/nowhere',
  SSH_AUTH_SOCK: '/nowhere',
};
const ALLOWED = {
  LANG: 'C.UTF-8',
  MAHABHARATHA_OWN: 'x y "z" $(touch /tmp/evil)',
  ALLOWED_ONE: 'ü',
  CI: 'true',
};

describeEach(FLEET_WAYS, (way) => {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());
  describe('given to the agent', () => {
    let site: HostileSite;
    let fleet: HostileFleet;
    let key: string;
    let watch: Watch;
    let code: number | null;

    beforeAll(async () => {
      await prepareWorkers(way, stack);
      site = new HostileSite({
        driver: way.driver,
        settings: settingsOf(way),
        tasks: TASKS,
        config: {
          environment: {
            allow: ['ALLOWED_*', 'RANDOM_*_NOT', 'LD_LIBRARY_PATH', 'SSH_AUTH_SOCK', 'GITHUB_*'],
          },
          quality_gates: GATES,
          worktree: { copy: ['.env'], setup_command: SEARCH },
          // One of the tasks fills it: the next one has room for its credentials all the same.
          resources: { container_memory_limit: '512m', container_tmp: '64m' },
        },
      });
      key = site.secret('key');
      const bait = Object.fromEntries(BAIT.map((name) => [name, site.secret('bait')]));
      watch = new Watch(key, () => inspectContainers(way, site.folder));
      fleet = site.start('kurukshetra', 1, { ...bait, ...STEERING, ...ALLOWED, ANTHROPIC_API_KEY: key });
      code = await fleet.ended;
      watch.stop();
    });
    afterAll(() => site[Symbol.asyncDispose]());

    test('[FL-08] the fleet has done its work, with searches all the way', () => {
      expect({ code, words: code === 0 ? '' : fleet.stderr.slice(-3000) }).toEqual({ code: 0, words: '' });
      expect(fleet.stderr).toMatch(/ANTHROPIC_API_KEY from the environment/);
    });

    test.each(['credentials-1', 'credentials-2'])(
      '[FL-08] %s: the agent has the key, and no login that nobody asked for',
      (task) => {
        const { variables, files, home, found } = site.report(task) as UsedCredentials;
        expect(variables['ANTHROPIC_API_KEY']).toBe(hash(key));
        expect(files).toEqual({});
        // Who looks for it here finds it: so where nothing is found, nothing is.
        expect(found).toEqual(expect.arrayContaining([expect.stringMatching(/^\/proc\/\d+\/environ$/)]));
        expect(home).toMatch(/^\/tmp\/agent-[0-9a-f]{16}$/);
      },
    );

    test('[FL-08] nobody else finds it: not set-up, verification, gates, later tasks or git', () => {
      const verified = TASKS.map(({ id }) =>
        readFileSync(join(taskFolder(site.paths, id), 'verification_output.txt'), 'utf8')
          .trim()
          .split('\n')
          .at(-1),
      );
      expect(verified).toEqual(TASKS.map(() => 'nothing'));
      for (const level of [1, 2]) {
        const gate = readFileSync(join(site.paths.checkResults, `level-${level}/search.json`), 'utf8');
        expect(JSON.parse(gate)).toMatchObject({ result: 'pass', output: 'nothing' });
      }
      const spied = [1, 2].map((number) =>
        site.git('show', `mahabharatha/demo/staging:out/spied-credentials-${number}`),
      );
      // A filter of the agent's is not asked at all: what was verified is what is committed.
      expect(spied).toEqual(['git did not ask', 'git did not ask']);
    });

    test('[FL-08] it is on no command line, and in no environment but that of the agent and of who gives it', () => {
      expect(watch.samples).toBeGreaterThan(20);
      expect([...watch.onCommandLines, ...watch.inContainers]).toEqual([]);
      expect(watch.inspected > 0).toBe(way.driver === 'docker');
      const others = watch.environments.filter(
        ({ inCell, line }) => inCell && !line.includes('hostile-agent.ts'),
      );
      expect(others).toEqual([]);
      expect(watch.environments.some(({ line, inCell }) => inCell && line.includes('hostile-agent.ts'))).toBe(
        true,
      );
    });

    test('[FL-08, FL-10] no value is in state, logs, artifacts, branches or words', () => {
      expect(site.findText(site.prefix, site.paths.home)).toEqual([]);
      expect(site.git('log', '-p', '--format=%B', 'main..mahabharatha/demo/staging')).not.toContain(
        site.prefix,
      );
      expect(fleet.stdout + fleet.stderr).not.toContain(site.prefix);
    });

    test('[FL-10] what is allowed arrives, and nothing else of the caller', () => {
      const { variables } = site.report('credentials-1') as UsedCredentials;
      for (const [name, value] of Object.entries(ALLOWED))
        expect([name, variables[name]]).toEqual([name, hash(value)]);
      const dropped = [...BAIT, ...Object.keys(STEERING)];
      expect(dropped.filter((name) => name in variables)).toEqual([]);
    });

    test('[FL-10] names of what is dropped are said, and no values', () => {
      const [line = ''] = fleet.stderr.split('\n').filter((words) => words.includes('Workers do not get'));
      for (const name of ['ANTHROPIC_API_KEY', 'AWS_SECRET_ACCESS_KEY', 'GITHUB_TOKEN', 'BASH_ENV'])
        expect(line).toContain(name);
      expect(line).toMatch(/ and \d+ more|SSH_AUTH_SOCK/);
    });
  });
});

// The gate is on the host, whatever makes the cells.
describeEach([OCI_FRESH], (way) => {
  describeThatNeeds(whyNoCertificates())('kept by the gate', () => {
    let site: HostileSite;
    let fleet: HostileFleet;
    let api: Api;
    let key: string;
    let code: number | null;
    let watch: Watch;

    beforeAll(async () => {
      api = await Api.start();
      site = new HostileSite({
        driver: way.driver,
        // The API of this test is on this machine, which nobody may reach otherwise.
        settings: {
          ...settingsOf(way),
          sessions: { egress: { permit: ['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'] } },
        },
        tasks: TASKS,
        plan: { hosts: ['example.org:443', `${api.name}:22`, '169.254.169.254:80', 'localhost:443'] },
        config: {
          network: { allow: [api.host] },
          credentials: { api_key: 'gate', api_host: api.host },
          quality_gates: GATES,
          worktree: { copy: ['.env'] },
          resources: { container_memory_limit: '512m', container_tmp: '64m' },
        },
        env: { SSL_CERT_FILE: api.bundle },
      });
      key = site.secret('key');
      // Also where it would be copied from.
      site.write(join(site.root, '.env'), `ANTHROPIC_API_KEY=${key}\n`);
      watch = new Watch(key, () => Promise.resolve([]));
      fleet = site.start('kurukshetra', 1, { ANTHROPIC_API_KEY: key });
      code = await fleet.ended;
      watch.stop();
    });
    afterAll(async () => {
      await site[Symbol.asyncDispose]();
      await api.stop();
    });

    test('[FL-08] the fleet has done its work', () => {
      expect({ code, words: code === 0 ? '' : fleet.stderr.slice(-3000) }).toEqual({ code: 0, words: '' });
    });

    test.each(['credentials-1', 'credentials-2'])('[FL-08] %s: the key is nowhere in the cell', (task) => {
      const { variables, found } = site.report(task) as UsedCredentials;
      expect(found).toEqual([]);
      expect(variables['ANTHROPIC_API_KEY']).toBe(hash('kept-by-the-gate'));
      expect(variables['ANTHROPIC_BASE_URL']).toBe(hash(`http://${api.host}`));
      expect(watch.environments.filter(({ inCell }) => inCell)).toEqual([]);
      expect(watch.onCommandLines).toEqual([]);
    });

    test('[FL-08] requests for the API have it all the same, once', () => {
      expect((site.report('credentials-1') as UsedCredentials).answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(api.requests).toEqual(
        [1, 2].map(() => ({ line: 'POST /v1/messages', keys: [key], host: api.host, body: '{"model":"x"}' })),
      );
    });

    test('[FL-08, FL-09] everything else is refused, and people can see it', () => {
      const { asked } = site.report('credentials-1') as UsedCredentials;
      expect(Object.keys(asked)).toHaveLength(4);
      for (const answer of Object.values(asked)) expect(answer).toMatch(/^HTTP\/1\.1 403 /);
      const log = readFileSync(join(taskFolder(site.paths, 'credentials-1'), 'execution.jsonl'), 'utf8');
      expect(log).toContain('example.org');
      expect(log).toContain('169.254.169.254');
    });

    test('[FL-08] the key is in nothing that the fleet has written or said', () => {
      expect(site.findText(key, site.paths.home)).toEqual([]);
      expect(site.git('log', '-p', '--format=%B', 'main..mahabharatha/demo/staging')).not.toContain(
        site.prefix,
      );
      expect(fleet.stdout + fleet.stderr).not.toContain(site.prefix);
    });
  });
});

function hash(value: string | Buffer): string {
  return createHash('sha256').update(value).digest('hex');
}
