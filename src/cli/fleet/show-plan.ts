import type { CommandContext } from '../program.ts';
import { toPrintable } from '../../lib/printable.ts';
import { renderTable } from '../render/table.ts';
import { readSettings } from '../settings-options.ts';
import { makeTerminalLog } from '../terminal-log.ts';
import { toSettings } from './agent-options.ts';
import type { LeadOptions } from './lead-fleet.ts';

interface PlanOptions extends LeadOptions {
  readonly whatIf?: true;
}

/** `--dry-run` and `--what-if`: reads everything, asks the drivers, changes nothing. */
export async function showPlan({ terminal, outcome }: CommandContext, options: PlanOptions): Promise<void> {
  const { config: settings } = await readSettings(toSettings(options), outcome);
  const [
    { prepareFleet, toFleetWish, describeSite },
    { describeBound, findBound },
    { fleetMachine },
    { planRun, whatIf },
  ] = await Promise.all([
    import('../../fleet/run/run-fleet.ts'),
    import('../../fleet/run/worktree-bound.ts'),
    import('../../app/fleet/fleet-machine.ts'),
    import('../../fleet/graph/plan-run.ts'),
  ]);
  const machine = fleetMachine(settings);
  const prepared = await prepareFleet({ ...options, folder: process.cwd() }, machine);
  const { graph, workers, config, paths } = prepared;
  const wish = toFleetWish({ ...options, autoBuild: false }, config);
  const hooks = { log: makeTerminalLog('warn', terminal), onProgress: () => {} };
  const site = await machine.openSite(config, wish, hooks);
  const bound = await findBound(machine, site, prepared);
  const mode = `${describeSite(site)}; ${describeBound(config, bound)}`;
  await site.close();
  const plan = planRun(graph, workers);
  const rates = options.whatIf === true ? whatIf(graph, workers) : undefined;
  if (options.json === true) {
    terminal.json({
      feature: paths.feature,
      mode: site.mode,
      driver: site.driver.name,
      mode_reason: site.reason,
      worktree_bytes: config.resources.worktree_disk,
      worktree_bound: bound.kind,
      workers,
      minutes: plan.minutes,
      critical_path: plan.criticalPath,
      levels: plan.levels.map(({ level, minutes, shares }) => ({
        level,
        minutes,
        workers: shares.map(({ worker, tasks, minutes: share }) => ({
          worker,
          minutes: share,
          tasks: tasks.map(({ id }) => id),
        })),
      })),
      warnings: [...prepared.notes, ...prepared.warnings],
      ...(rates === undefined ? {} : { what_if: rates }),
    });
    return;
  }
  for (const note of [...prepared.notes, ...prepared.warnings]) terminal.note(`fleet: ${toPrintable(note)}`);
  const { bold, dim } = terminal.paint;
  terminal.line(
    `${bold(paths.feature)}: ${plan.taskCount} tasks in ${plan.levels.length} levels, ${workers} workers`,
  );
  terminal.line(toPrintable(mode));
  if (rates !== undefined) {
    terminal.line('');
    const rows = rates.map(({ workers: count, minutes, speedup, used }) => [
      String(count),
      `${Math.round(minutes)} min`,
      `${speedup.toFixed(1)} ×`,
      `${Math.round(used * 100)} %`,
    ]);
    terminal.line(renderTable([['workers', 'time', 'faster', 'busy'], ...rows]));
    return;
  }
  for (const { level, shares, minutes } of plan.levels) {
    terminal.line('');
    terminal.line(bold(`level ${level}`) + dim(`  about ${Math.round(minutes)} min`));
    const rows = shares.flatMap(({ worker, tasks }) =>
      tasks.map(({ id, title, verification }) => [
        `  worker ${worker}`,
        id,
        toPrintable(title),
        dim(toPrintable(verification?.command ?? 'no verification')),
      ]),
    );
    terminal.line(renderTable(rows));
  }
  terminal.line('');
  const { criticalPath } = plan;
  terminal.line(
    `about ${Math.round(plan.minutes)} min in all; no number of workers does it in less than ${Math.round(criticalPath.minutes)} min (${criticalPath.tasks.join(' → ')})`,
  );
}
