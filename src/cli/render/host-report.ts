import type { HostReport } from '../../app/doctor.ts';
import type { NestReport } from '../../app/inspect-nests.ts';
import { PROMISE_MEANING, PROMISES, type EnforcedBy } from '../../core/enforcement.ts';
import type { Terminal } from '../terminal.ts';
import { renderNotes } from './ready.ts';
import { renderTable } from './table.ts';

type Paints = Terminal['paint'];
type DriverReport = HostReport['drivers'][number];

export function renderHostReport(report: HostReport & { readonly nests: NestReport }, paint: Paints): string {
  return [
    `Node ${report.node}`,
    ...report.drivers.flatMap((driver) => ['', ...renderDriver(driver, paint)]),
    '',
    ...renderPromises(report.drivers, paint),
    paint.bold('Fresh cells'),
    `  ${renderNests(report.nests, paint)}`,
    '',
    paint.bold('Workspaces of sessions'),
    report.workspaces.storage === 'volume'
      ? `  ${paint.green('✓')} bounded file systems; dependencies outlive their session`
      : `  ${paint.yellow('!')} in memory, gone with their session: ${report.workspaces.reason ?? ''}`,
    '',
    paint.bold('Languages'),
    ...report.languages.map((language) =>
      language.available
        ? `  ${paint.green('✓')} ${language.name}`
        : `  ${paint.red('✗')} ${language.name}: ${language.problem ?? 'not available'}`,
    ),
    ...renderStoreProblem(report.storeProblem, paint),
    ...renderLeft(report.left, paint),
    ...renderOtherStores(report.otherStores, paint),
  ].join('\n');
}

function renderNests({ asked, problem }: NestReport, paint: Paints): string {
  const each = 'each is made by the runtime';
  if (problem !== null) return `${paint.yellow('!')} ${each}: ${problem}`;
  return asked
    ? `${paint.green('✓')} are made inside cells that wait, and their walls stand`
    : `${paint.green('✓')} ${each}; they could be made inside cells that wait, which is faster: pool.nested`;
}

function renderDriver(driver: DriverReport, paint: Paints): string[] {
  const { probe } = driver;
  const chosen = driver.chosen ? ' (chosen)' : '';
  return probe.ok
    ? [
        `${paint.green('✓')} ${paint.bold(`${driver.name} driver`)}${chosen}: works with ${probe.runtime}`,
        ...(probe.facts ?? []).map(({ name, value }) => `    ${name.padEnd(9)} ${value}`),
        ...renderNotes(probe.notes, paint),
      ]
    : [
        `${paint.red('✗')} ${paint.bold(`${driver.name} driver`)}${chosen}: ${probe.problem}`,
        `    → ${probe.remedy}`,
      ];
}

function renderLeft(left: HostReport['left'], paint: Paints): string[] {
  if (left.length === 0) return [];
  const rows = left.map(({ driver, cell, session, paused, since, until }) => [
    `  ${driver}`,
    cell,
    session ?? '-',
    since ?? '-',
    until ?? (paused ? 'never: paused' : '-'),
  ]);
  const heading = ['  DRIVER', 'CELL', 'SESSION', 'SINCE', 'ENDS BY ITSELF'];
  return [
    '',
    paint.bold('Cells of servers that are gone'),
    renderTable([heading, ...rows]),
    '  → To end them: hotcell down',
  ];
}

function renderStoreProblem(problem: HostReport['storeProblem'], paint: Paints): string[] {
  if (problem === null) return [];
  return [
    '',
    paint.bold('Sessions of this folder'),
    `  ${paint.red('✗')} ${problem.message}`,
    `    → ${problem.hint}`,
  ];
}

function renderOtherStores(stores: HostReport['otherStores'], paint: Paints): string[] {
  if (stores.length === 0) return [];
  const rows = stores.map(({ driver, store, cells, since }) => [
    `  ${driver}`,
    store,
    String(cells),
    since ?? '-',
  ]);
  return [
    '',
    paint.bold('Cells of sessions in other folders, with a server or without'),
    renderTable([['  DRIVER', 'STORE', 'CELLS', 'SINCE'], ...rows]),
    '  → To end them and their server: hotcell down --set sessions.dir=FOLDER, where its server.json names the store',
  ];
}

/** Who keeps which promise, one column per driver that works. */
function renderPromises(drivers: readonly DriverReport[], paint: Paints): string[] {
  const working = drivers.flatMap(({ name, probe }) =>
    probe.ok ? [{ name, enforcement: probe.enforcement }] : [],
  );
  if (working.length === 0) return [];
  const rows = PROMISES.map((promise) => [
    `  ${promise}`,
    ...working.map(({ enforcement }) => paintEnforcer(enforcement[promise], paint)),
    paint.dim(PROMISE_MEANING[promise]),
  ]);
  const heading = ['  PROMISE', ...working.map(({ name }) => name.toUpperCase()), 'MEANING'];
  return [paint.bold('Who keeps which promise'), renderTable([heading, ...rows]), ''];
}

function paintEnforcer(by: EnforcedBy, paint: Paints): string {
  switch (by) {
    case 'kernel':
    case 'hypervisor':
      return paint.green(by);
    case 'supervisor':
      return paint.yellow(by);
    case 'nobody':
      return paint.red(by);
    default:
      return by satisfies never;
  }
}
