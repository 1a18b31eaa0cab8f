import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { planSetup } from '../environment/plan-setup.ts';
import { FleetConfig } from '../fleet-config.ts';
import { FleetState } from '../fleet-state.ts';
import { fleetPaths } from '../names.ts';
import { StateStore } from '../state/state-store.ts';
import { toAttention } from '../status/attention.ts';
import type { RunResult } from '../worker/run-in-cell.ts';
import { installDependencies, type Installing } from './install-dependencies.ts';

const OK: RunResult = { reason: 'exit', code: 0, stdout: '', stderr: '' };
const NPM = {
  'package.json': Buffer.from('{"dependencies":{"a":"1"}}'),
  'package-lock.json': Buffer.from('{}'),
};

let root = '';
let store: StateStore;
let events: unknown[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-install-'));
  store = new StateStore(fleetPaths(root, 'shop'));
  store.create(FleetState.parse({ feature: 'shop', started_at: '2026-01-01T00:00:00Z' }));
  events = [];
});
afterEach(() => rmSync(root, { recursive: true }));

function planOf(command?: string) {
  const wish = { setup: 'auto', setup_command: command } as const;
  const [plan] = planSetup(wish, { manifests: NPM, platform: 'here', place: '/workspace' }).plans;
  if (plan === undefined) throw new Error('nothing is planned');
  return plan;
}

interface Case {
  readonly result?: Partial<RunResult>;
  readonly command?: string;
  readonly allow?: string[];
  readonly mode?: 'container' | 'subprocess';
  readonly signal?: AbortSignal;
}

/** Returns whether it worked, and what the cell was asked. */
async function install({ result, command, allow = ['npm'], mode = 'container', signal }: Case) {
  const run = {
    config: FleetConfig.parse({ network: { allow } }),
    site: { mode } as Installing['site'],
    store,
    signal: signal ?? new AbortController().signal,
    onEvent: (event: string, data: object) => void events.push([event, data]),
  };
  let asked: unknown[] = [];
  const place = {
    run: (...words: unknown[]) => {
      asked = words;
      return Promise.resolve({ ...OK, ...result });
    },
  };
  const worked = await installDependencies(run, place, planOf(command));
  return { worked, asked };
}

const attention = () =>
  toAttention({ state: store.require(), tasks: [], isAlive: true }).map(
    ({ kind, text }) => `${kind} ${text}`,
  );

describe('dependencies that cannot be installed', () => {
  test('[FL-03] are told with the run, in the state and in status, with the last words', async () => {
    const result = { code: 1, stderr: `${'x'.repeat(9000)}\nnpm error 404` };
    expect((await install({ result })).worked).toBe(false);
    const failed = {
      command: 'npm ci --no-audit --no-fund',
      problem: expect.stringMatching(/^ended with 1: x+\nnpm error 404$/),
    };
    expect(events).toEqual([
      ['dependencies_started', { command: failed.command }],
      ['dependencies_failed', failed],
    ]);
    const { execution_log: log } = store.require();
    expect(log.map(({ event }) => event)).toEqual(['dependencies_started', 'dependencies_failed']);
    expect(attention()).toEqual([
      expect.stringMatching(/^dependencies dependencies not installed: npm ci .* ended with 1: x/),
    ]);
    // Mended, or over.
    await install({});
    expect(attention()).toEqual([]);
    await install({ result });
    store.update((state) => void (state.finished_at = '2026-01-01T00:00:00Z'));
    expect(attention()).toEqual([]);
  });

  test('[FL-03] are given up in time', async () => {
    const { asked } = await install({ result: { code: 124, reason: 'timeout', stdout: 'still at it\n' } });
    expect(asked[1]).toMatchObject({ timeMs: 600_000 });
    expect(events.at(-1)).toMatchObject([
      'dependencies_failed',
      { problem: 'was not done in 10 minutes: still at it' },
    ]);
  });

  test('[FL-03] are an error where a command was asked for', async () => {
    await expect(
      install({ command: 'make deps', result: { code: 2, stderr: 'no rule' } }),
    ).rejects.toMatchObject({
      code: 'CELL_START_FAILED',
      message: 'the set-up of the worktree ended with 2: no rule',
    });
  });

  test('[FL-03] are no news when the run is stopped', async () => {
    await install({ signal: AbortSignal.abort(), result: { code: 130, reason: 'cancelled' } });
    expect(attention()).toEqual([]);
  });
});

test('[FL-03] a command that was asked for has the patience that it has by itself', async () => {
  const { asked } = await install({ command: 'make deps' });
  expect(asked[0]).toHaveProperty('env', {});
});

test.each([
  [['api.anthropic.com'], 'container', 'npm'],
  [[], 'container', 'npm'],
  [['pypi', 'github'], 'container', 'npm'],
  [['npm'], 'container', undefined],
  // It may be a registry.
  [['api.anthropic.com', 'npm.corp'], 'container', undefined],
  [[], 'subprocess', undefined],
] as const)(
  '[FL-03] with %j in mode %s the missing way to a registry is %s, and said before',
  async (...row) => {
    const [allow, mode, missing] = row;
    const { asked } = await install({ allow: [...allow], mode });
    expect(events).toEqual([
      [
        'dependencies_started',
        {
          command: 'npm ci --no-audit --no-fund',
          ...(missing === undefined ? {} : { unreachable: missing }),
        },
      ],
    ]);
    const env =
      missing === undefined
        ? { npm_config_fetch_retry_maxtimeout: '3000', PIP_RETRIES: '2' }
        : { npm_config_fetch_retries: '0', PIP_RETRIES: '0' };
    expect(asked[0]).toMatchObject({ env });
  },
);
