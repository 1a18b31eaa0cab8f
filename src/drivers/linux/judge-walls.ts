import { CELL_UID, WORKDIR_IN_CELL } from './cell-paths.ts';
import type { MaskablePaths } from './masked-paths.ts';

/** What a run is asked to tell about itself, from inside its walls. */
export const REPORTED = [
  '/proc/self/status',
  '/proc/self/uid_map',
  '/proc/self/gid_map',
  '/proc/self/setgroups',
  '/proc/self/mountinfo',
  '/proc/self/oom_score_adj',
  '/proc/sys/kernel/hostname',
  '/proc/self/net/dev',
];

/** Some files of the kernel by their paths, each as `<path>\n<length>\n<text>`. */
export function parseReport(bytes: Uint8Array): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  let rest = Buffer.from(bytes);
  while (rest.length > 0) {
    const head = /^([^\n]*)\n(\d{1,7})\n/.exec(rest.toString('latin1', 0, 4096));
    if (head === null) break;
    const [whole, path = '', length] = head;
    const end = whole.length + Number(length);
    files.set(path, rest.toString('latin1', whole.length, end));
    rest = rest.subarray(end);
  }
  return files;
}

export interface ExpectedWalls {
  readonly id: number;
  readonly host: string;
  readonly paths: MaskablePaths;
  /** The bound of its workdir. */
  readonly diskBytes: number;
}

/** Why these walls are not those that were planned; undefined when each of them stands. */
export function judgeWalls(report: ReadonlyMap<string, string>, expected: ExpectedWalls): string | undefined {
  const status = report.get('/proc/self/status') ?? '';
  const field = (name: string): string =>
    new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]?.trim() ?? 'unknown';
  const own = `${CELL_UID} ${expected.id} 1`;
  const mapOf = (path: string): string => (report.get(path) ?? '').trim().replaceAll(/\s+/g, ' ');
  const ids = Array.from({ length: 4 }, () => CELL_UID).join('\t');
  const claims: readonly (readonly [what: string, seen: string, wanted: string])[] = [
    ['user', field('Uid'), ids],
    ['group', field('Gid'), ids],
    ['user map', mapOf('/proc/self/uid_map'), own],
    ['group map', mapOf('/proc/self/gid_map'), own],
    ['setgroups', mapOf('/proc/self/setgroups'), 'deny'],
    ['process number', field('Pid'), '2'],
    ['parent', field('PPid'), '1'],
    ...['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map(
      (name) => [name, field(name), NO_CAPABILITY] as const,
    ),
    ['new privileges', field('NoNewPrivs'), '1'],
    ['filter', field('Seccomp'), '2'],
    // That of the outer cell, and one of its own.
    ['filters', field('Seccomp_filters'), '2'],
    ['host name', mapOf('/proc/sys/kernel/hostname'), expected.host],
    ['network', toInterfaces(report.get('/proc/self/net/dev') ?? ''), 'lo'],
    ['mounts', judgeMounts(report.get('/proc/self/mountinfo') ?? '', expected), ''],
  ];
  const wrong = claims.find(([, seen, wanted]) => seen !== wanted);
  if (wrong === undefined) return undefined;
  const [what, seen, wanted] = wrong;
  return what === 'mounts' ? seen : `${what}: ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`;
}

const NO_CAPABILITY = '0'.repeat(16);

function toInterfaces(table: string): string {
  return [...table.matchAll(/^\s*([^\s:|]+):/gm)].map(([, name]) => name).join(' ');
}

/** Nothing but the workdir can be written to, and every path that is to be hidden is covered. */
function judgeMounts(mountinfo: string, { paths: { masked, readOnly }, diskBytes }: ExpectedWalls): string {
  const mounts = mountinfo
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [, , , , point = '', options = '', ...rest] = line.split(' ');
      const superOptions = rest.at(-1) ?? '';
      const isReadOnly = [options, superOptions].some((words) => words.split(',').includes('ro'));
      return { point, superOptions, isWritable: !isReadOnly };
    });
  // The last one that was mounted on a path is the one that is seen.
  const seen = new Map(mounts.map((mount) => [mount.point, mount]));
  const workdir = seen.get(WORKDIR_IN_CELL)?.superOptions.split(',') ?? [];
  if (!workdir.includes(`size=${diskBytes / 1024}k`)) return 'the workdir is not its own';
  for (const path of masked) if (!seen.has(path)) return `${path} can be read`;
  for (const path of readOnly) if (seen.get(path)?.isWritable !== false) return `${path} can be written to`;
  const open = [...seen.values()].find(({ point, isWritable }) => isWritable && !isExpected(point, masked));
  return open === undefined ? '' : `${open.point} can be written to`;
}

const DEVICES = /^\/dev\/(?:null|zero|full|random|urandom)$/;

function isExpected(point: string, masked: readonly string[]): boolean {
  // A mask is a device of the host or an empty folder; what is in /proc belongs to root, whom nobody in here is.
  return point === WORKDIR_IN_CELL || point === '/proc' || DEVICES.test(point) || masked.includes(point);
}
