import { CONCURRENCIES } from '../measures/throughput.ts';
import type { LanguageName } from '../support/hello.ts';
import type { Summary } from '../support/statistics.ts';
import { WAY_NAMES, type WayName } from '../ways/way.ts';
import { renderTable } from './markdown-table.ts';
import { latencyRatio, rateOf, type Results } from './results.ts';
import { checkTargets } from './targets.ts';

const NONE = '–';

/** Ratios first: they are what carries over to another machine. */
export function renderReport(results: Results): string {
  const parts = [
    describe(results),
    ['### Required', renderChecks(results)],
    ['### Hello, × bare interpreter (median / p95)', renderRatios(results, 'bare')],
    ...(waysOf(results).includes('docker exec')
      ? [['### Hello, × docker exec (median / p95)', renderRatios(results, 'docker exec')]]
      : []),
    ...(results.throughput.length > 0
      ? [['### Sustained, runs per second (× bare, × docker exec)', renderThroughput(results)]]
      : []),
    ['### One cell', renderCells(results)],
    ['### Hello, ms (median / p95)', renderMilliseconds(results)],
    ['### Start, ms (median / p95)', renderStart(results)],
  ];
  return parts.map((part) => part.join('\n\n')).join('\n\n');
}

function describe({ machine, versions, options, foreignCores, notWarm }: Results): string[] {
  const programs = Object.entries(versions).map(([name, version]) => `${name}: ${version}`);
  const lines = [
    `${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}, cgroups ${machine.cgroups}; ` +
      `${options.rounds} rounds, ${options.seconds} s of load each. ` +
      `Others kept ${foreignCores.toFixed(2)} cores busy.`,
    `${programs.join('; ')}.`,
  ];
  if (notWarm > 0) lines.push(`${notWarm} paced requests found no booted cell and were cold.`);
  return lines;
}

function renderChecks(results: Results): string {
  const rows = checkTargets(results).map(({ requirement, value, verdict }) => [
    requirement,
    value?.toFixed(2) ?? NONE,
    verdict,
  ]);
  return renderTable(['requirement', 'found', 'verdict'], rows);
}

function waysOf({ latency }: Results): WayName[] {
  return WAY_NAMES.filter((way) => latency.some((entry) => entry.way === way));
}

function languagesOf({ latency }: Results): LanguageName[] {
  return [...new Set(latency.map(({ language }) => language))];
}

function renderRatios(results: Results, other: WayName): string {
  const ways = waysOf(results).filter((way) => way !== other);
  const rows = languagesOf(results).map((language) => [
    language,
    ...ways.map((way) => {
      const ratio = latencyRatio(results, language, [way, other]);
      return ratio === undefined ? NONE : `${ratio.median.toFixed(2)} / ${ratio.p95.toFixed(2)}`;
    }),
  ]);
  return renderTable(['language', ...ways], rows);
}

function renderMilliseconds(results: Results): string {
  const ways = waysOf(results);
  const rows = languagesOf(results).map((language) => [
    language,
    ...ways.map((way) => {
      const found = results.latency.find((entry) => entry.language === language && entry.way === way);
      return found === undefined ? NONE : milliseconds(found.ms);
    }),
  ]);
  return renderTable(['language', ...ways], rows);
}

function renderThroughput(results: Results): string {
  const languages = [...new Set(results.throughput.map(({ language }) => language))];
  const ways = WAY_NAMES.filter((way) => results.throughput.some((entry) => entry.way === way));
  const rows = languages.flatMap((language) =>
    CONCURRENCIES.map((concurrency) => {
      const rate = (way: WayName): number | undefined => rateOf(results, language, { way, concurrency });
      return [
        language,
        String(concurrency),
        ...ways.map((way) => withRatios(rate(way), way, [rate('bare'), rate('docker exec')])),
      ];
    }),
  );
  return renderTable(['language', 'at a time', ...ways], rows);
}

function withRatios(
  rate: number | undefined,
  way: WayName,
  [bare, docker]: readonly [number | undefined, number | undefined],
): string {
  if (rate === undefined) return NONE;
  const toText = (other: number | undefined): string =>
    other === undefined ? NONE : (rate / other).toFixed(2);
  return way === 'bare' ? rate.toFixed(0) : `${rate.toFixed(0)} (${toText(bare)}, ${toText(docker)})`;
}

function renderCells({ cells }: Results): string {
  const toMiB = (bytes: number): string => (bytes / 1024 ** 2).toFixed(1);
  const rows = cells.map(({ language, processBytes, machineBytes, cpuMs }) => [
    language,
    toMiB(processBytes),
    toMiB(machineBytes),
    cpuMs.refill.toFixed(0),
    cpuMs.job.toFixed(1),
    cpuMs.server.toFixed(1),
  ]);
  const head = ['MiB, processes', 'MiB, machine', 'CPU ms, boot and end', 'CPU ms, job', 'CPU ms, server'];
  return renderTable(['language', ...head], rows);
}

function renderStart({ start }: Results): string {
  return renderTable(
    ['what', 'ms', '× bare node'],
    (
      [
        ['server ready, one cell of each language hot', start.ready],
        ['server with the whole pool hot', start.full],
        ['`hotcell --version`', start.version],
        ['`node -e 0`', start.bareNode],
      ] as const
    ).map(([what, ms]) => [what, milliseconds(ms), (ms.median / start.bareNode.median).toFixed(1)]),
  );
}

function milliseconds({ median, p95 }: Summary): string {
  return `${median.toFixed(1)} / ${p95.toFixed(1)}`;
}
