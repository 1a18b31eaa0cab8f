import { imageNameOf, type DriverTraits } from '../core/driver.ts';
import { HotcellError, messageOf } from '../core/errors.ts';
import { imageOf } from '../core/language.ts';
import type { HttpDependencies } from '../http/dependencies.ts';
import { HotPool } from '../pool/hot-pool.ts';
import type { NestBounds } from '../pool/nested-cells.ts';
import type { Strategy } from '../pool/strategy.ts';
import { Tenants } from '../policy/tenants.ts';
import { OneShotRuns } from '../runs/runs.ts';
import { chooseDriver, type DriverChoice } from './drivers/choose-driver.ts';
import type { DriverHooks } from './drivers/make-drivers.ts';
import type { Config } from './config/config.ts';
import { toLanguageTable } from './config/language-table.ts';
import { Metrics } from './metrics/metrics.ts';
import { openRunPackages } from './open-packages.ts';
import { openSessions } from './open-sessions.ts';
import { SYSTEM_CLOCK } from './system-clock.ts';

export interface Engine extends Pick<
  HttpDependencies,
  'runs' | 'sessions' | 'sessionsProblem' | 'tenants' | 'health' | 'metrics' | 'metricsView'
> {
  /** What makes the cells. */
  readonly choice: DriverChoice;
  readonly strategy: Strategy;
  /** Ends running executions and removes every cell. */
  close(): Promise<void>;
}

const SECOND_LOOK_MS = 5000;

/** Puts driver, pool and use cases together; resolves when the first cells are hot. */
export async function startEngine(config: Config, hooks: DriverHooks): Promise<Engine> {
  const { log } = hooks;
  // Folders and files for the cells' users must not depend on what our caller had as umask.
  process.umask(0o022);
  const languages = toLanguageTable(config.languages);
  const choice = await chooseDriver(config, hooks);
  const { driver, probe, reason } = choice;
  const strategy = toStrategy(config, driver.traits);
  const reclaim = async (): Promise<void> => {
    const reclaimed = await driver.reclaim();
    if (reclaimed.length > 0) log.info({ cells: reclaimed.length }, 'cells reclaimed');
  };
  await reclaim();
  // Again soon, and then now and then: an engine may finish what a server asked for after that server died.
  const reclaimAgain = (): void => {
    reclaim().catch((error: unknown) => log.warn({ error: messageOf(error) }, 'cell reclaim failed'));
  };
  const secondLook = setTimeout(reclaimAgain, SECOND_LOOK_MS).unref();
  const stopReclaiming = SYSTEM_CLOCK.every(config.pool.idleCheckMs, reclaimAgain);

  const stopping = new AbortController();
  const pool = new HotPool({
    driver,
    strategy,
    languages,
    limits: config.limits,
    clock: SYSTEM_CLOCK,
    log,
    ...config.pool,
    ...toNests(config),
  });
  const metrics = new Metrics({
    load: () => runs.load,
    sessionStats: () => opened.stats(),
    ready: () => Object.keys(languages).map((language) => ({ language, cells: pool.status(language).ready })),
  });
  const packages = config.packages.python ? await openRunPackages(config, driver, log) : undefined;
  const runs: OneShotRuns = new OneShotRuns({
    pool,
    languages,
    limits: config.limits,
    ceilings: config.ceilings,
    keptBytes: config.outputKeptBytes,
    running: config.pool.running,
    queue: config.pool.queue,
    stopping: stopping.signal,
    log,
    ...(packages === undefined ? {} : { packages }),
    imageName: (language) => imageNameOf(driver, imageOf(language), language.command[0] ?? ''),
    onRun: (result) => metrics.count(result),
  });
  const closeRest = async (): Promise<void> => {
    stopReclaiming();
    clearTimeout(secondLook);
    stopping.abort(new HotcellError('SHUTTING_DOWN', 'the server is stopping'));
    await pool.close();
    await packages?.close();
    await driver.close();
  };
  const opened = await openSessions(config, driver, log).catch(async (error: unknown) => {
    await closeRest();
    throw error;
  });
  const close = async (): Promise<void> => {
    await opened.close();
    await closeRest();
  };

  hooks.onProgress(`booting cells with ${probe.runtime}`);
  const failed = await pool.start();
  for (const [language, error] of failed)
    log.warn({ language, error: error.message, hint: error.hint }, 'language unavailable');
  const [firstFailure] = failed.values();
  if (firstFailure !== undefined && failed.size === Object.keys(languages).length) {
    await close();
    throw new HotcellError('DRIVER_UNAVAILABLE', `no cell could be started: ${firstFailure.message}`, {
      hint: firstFailure.hint,
      cause: firstFailure,
    });
  }
  const startedAt = SYSTEM_CLOCK.now();
  return {
    runs,
    sessions: opened.sessions,
    sessionsProblem: opened.problem,
    tenants: new Tenants({ apiKey: config.apiKey, tenants: config.tenants }),
    choice,
    strategy,
    health: () => {
      const states = runs.languages().map(({ name, state }) => [name, state] as const);
      const problem = driver.problem?.();
      // Where no cell is to wait, one that is stopped is nothing to worry about.
      const isRunning = config.pool.size === 0 || states.every(([, state]) => state === 'running');
      return {
        status: problem === undefined && isRunning ? 'ok' : 'degraded',
        containers: Object.fromEntries(states),
        uptime_seconds: Math.floor((SYSTEM_CLOCK.now() - startedAt) / 1000),
        driver: driver.name,
        driver_reason: reason,
        runtime: probe.runtime,
        strategy,
        walls: pool.walls.way,
        walls_problem: pool.walls.problem ?? null,
        problem: problem ?? null,
      };
    },
    metrics: () => metrics.text(),
    metricsView: () => metrics.view(),
    close,
  };
}

function toNests({ pool: { nested, nestSlots, nestRuns, nestAgeMs } }: Config): { nests?: NestBounds } {
  return nested ? { nests: { slots: nestSlots, runs: nestRuns, ageMs: nestAgeMs } } : {};
}

function toStrategy(config: Config, { sharesByDefault }: DriverTraits): Strategy {
  if (config.strategy !== 'auto') return config.strategy;
  return sharesByDefault ? 'shared' : 'fresh';
}
