import { HotcellError } from '../../core/errors.ts';
import { EGRESS_PRESETS } from '../../core/host-pattern.ts';
import type { SetupPlan } from '../environment/plan-setup.ts';
import { appendEvent } from '../state/state-store.ts';
import type { Place } from '../worker/place.ts';
import type { FleetRun } from './fleet-run.ts';

/** What a user has written may build for long; what we only guessed may not hold up the work for long. */
const ASKED_MS = 30 * 60_000;
const GUESSED_MS = 10 * 60_000;
const WORDS_KEPT = 500;
/** Whoever cannot reach a registry learns so at once. */
const NO_RETRIES = { npm_config_fetch_retries: '0', PIP_RETRIES: '0' };
/** Where nobody knows whether there is a way: npm by itself tries for minutes to reach what is not there. */
const SHORT_WAITS = {
  npm_config_fetch_retry_mintimeout: '1000',
  npm_config_fetch_retry_maxtimeout: '3000',
  npm_config_fetch_timeout: '30000',
  PIP_RETRIES: '2',
};

export type Installing = Pick<FleetRun, 'config' | 'site' | 'store' | 'signal' | 'onEvent'>;

/**
 * Runs a plan in the cell, and says whether it has worked. Everybody can see that it has begun and why it has failed: with
 * the run, in the state and in `status`.
 */
export async function installDependencies(
  run: Installing,
  place: Pick<Place, 'run'>,
  plan: SetupPlan,
): Promise<boolean> {
  const command = plan.command.split('\n')[0] ?? '';
  const unreachable = findUnreachable(run, plan);
  tell(run, 'dependencies_started', { command, ...(unreachable === undefined ? {} : { unreachable }) });
  const env = unreachable === undefined ? (plan.runsAlways ? {} : SHORT_WAITS) : NO_RETRIES;
  const timeMs = plan.runsAlways ? ASKED_MS : GUESSED_MS;
  const { code, reason, stdout, stderr } = await place.run(
    { argv: ['bash', '-c'], env, verbatim: { argv: [plan.command], env: {} } },
    { timeMs, signal: run.signal },
  );
  if (code === 0) {
    run.store.update((state) => {
      delete state.setup_problems?.[command];
    });
    return true;
  }
  if (run.signal.aborted) return false;
  const end = reason === 'timeout' ? `was not done in ${timeMs / 60_000} minutes` : `ended with ${code}`;
  const words = (stderr.trim() === '' ? stdout : stderr).trim().slice(-WORDS_KEPT);
  const problem = words === '' ? end : `${end}: ${words}`;
  // What was asked for by name must work; what we only guessed may be of no use here.
  if (plan.runsAlways)
    throw new HotcellError('CELL_START_FAILED', `the set-up of the worktree ${problem}`, {
      hint: 'Mend worktree.setup_command.',
    });
  tell(run, 'dependencies_failed', { command, problem });
  return false;
}

/** The preset without which nothing can be fetched. Any other host may be a registry of their own. */
function findUnreachable({ config, site }: Installing, { registry }: SetupPlan): string | undefined {
  const { allow } = config.network;
  if (site.mode !== 'container' || registry === undefined || allow.includes(registry)) return undefined;
  const known: readonly string[] = [...EGRESS_PRESETS, config.credentials.api_host];
  return allow.every((host) => known.includes(host)) ? registry : undefined;
}

function tell({ store, onEvent }: Installing, event: string, data: Record<string, string>): void {
  store.update((state) => {
    const { command, problem } = data;
    if (command !== undefined && problem !== undefined) (state.setup_problems ??= {})[command] = problem;
    appendEvent(state, event, data);
  });
  onEvent(event, data);
}
