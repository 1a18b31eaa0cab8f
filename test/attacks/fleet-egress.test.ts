import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { taskFolder } from '../../src/fleet/names.ts';
import { layBait, type Bait } from '../support/bait.ts';
import type { Reached } from '../support/hostile-network-attack.ts';
import type { HostileFleet } from '../support/hostile-fleet.ts';
import { HostileSite } from '../support/hostile-site.ts';
import { settingsOf } from '../support/hostile-ways.ts';
import { waitFor } from '../support/leftovers.ts';
import { OCI_FRESH, describeEach } from '../support/served-by.ts';

/** Where this machine gets packages from, and whom it trusts: mirrors count, so no host stands here. */
const NETWORK_VARIABLES = /^(?:SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS|npm_config_\w+|PIP_INDEX_URL)$/i;
const env = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && NETWORK_VARIABLES.test(name) ? [[name, value]] : [],
  ),
);
const REGISTRY = new URL(execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim())
  .hostname;
const REFUSED = [
  'example.org:443',
  `evil-${REGISTRY}:443`,
  `${REGISTRY}.example.org:443`,
  `${REGISTRY}:22`,
  'localhost:443',
  '127.0.0.1:443',
  '169.254.169.254:80',
  '[::1]:443',
  'metadata.google.internal:80',
  'host.docker.internal:443',
];
const TASKS = ['network-1', 'network-2'];

// What opens a network for cells is the same for sessions, which are tried on each driver.
describeEach([OCI_FRESH], (way) => {
  let site: HostileSite;
  let fleet: HostileFleet;
  let bait: Bait;
  let code: number | null;

  beforeAll(async () => {
    bait = await layBait();
    site = new HostileSite({
      driver: way.driver,
      settings: settingsOf(way),
      tasks: TASKS.map((id) => ({ id })),
      plan: {
        hosts: [...REFUSED, `${REGISTRY}:443`],
        ports: [bait.tcpPort],
        sockets: [bait.socketPath, `\0${bait.abstractName}`],
      },
      config: { network: { allow: ['npm'] } },
      env: { ...env, npm_config_registry: `https://${REGISTRY}/` },
    });
    fleet = site.start('kurukshetra', 2);
    const bound = (): string[] => globSync(join(site.paths.worktrees, 'worker-*/.state/bound'));
    await waitFor('both have their ports', () => bound().length === 2 || fleet.isOver);
    site.go();
    code = await fleet.ended;
  }, 150_000);
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    await bait.remove();
  });

  test('[FL-09] two workers have the same port at once', () => {
    expect({ code, words: code === 0 ? '' : fleet.stderr.slice(-3000) }).toEqual({ code: 0, words: '' });
    const bound = TASKS.map((task) => (site.report(task) as Reached).bound);
    expect(bound.map(([common]) => common)).toEqual([18_080, 18_080]);
    expect(new Set(bound.map(([, own]) => own)).size).toBe(2);
  });

  test.each(TASKS)(
    '[FL-09] %s: no host, address, name server, socket or neighbour is reached directly',
    (task) => {
      expect((site.report(task) as Reached).reached).toEqual([]);
      expect(bait.visitors).toEqual([]);
    },
  );

  test.each(TASKS)('[FL-09] %s: the gate lets it to the registry and nowhere else', (task) => {
    const { asked } = site.report(task) as Reached;
    expect(asked[`${REGISTRY}:443`]).toMatch(/^HTTP\/1\.1 200 /);
    for (const host of REFUSED)
      expect([host, asked[host]]).toEqual([host, expect.stringMatching(/^HTTP\/1\.1 403 /)]);
  });

  test.each(TASKS)('[FL-09, FL-11] %s: npm install works as it is', (task) => {
    const { install } = site.report(task) as Reached;
    expect({ ...install, words: install.status === 0 ? '' : install.words }).toEqual({
      status: 0,
      words: '',
    });
  });

  test('[FL-09] what was refused is in the log of the task', () => {
    const log = readFileSync(join(taskFolder(site.paths, 'network-1'), 'execution.jsonl'), 'utf8');
    expect(log).toContain('"egress_refused"');
    for (const host of ['example.org', '169.254.169.254', `evil-${REGISTRY}`]) expect(log).toContain(host);
  });

  test('[FL-05, FL-09] nothing is left', () => {
    expect(site.remains()).toEqual([]);
  });
});
