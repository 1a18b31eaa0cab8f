import { globSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Semaphore } from '../../src/lib/semaphore.ts';
import { engineApi } from './docker-engine.ts';
import { processesIn } from './footprint.ts';
import { listProcesses, waitFor } from './leftovers.ts';
import { dataDirectoryOf } from './server.ts';
import type { ServedSessions } from './session-site.ts';

const AT_ONCE = 8;

/** Numbered lines with the time of each, until there is a file `stop`; the marker is only to be seen. */
export const count = (marker: string): string =>
  `perl -e '$| = 1; for ($n = 0; !-e "stop"; $n++) { print "$n ", time, "\\n"; select undef, undef, undef, 0.5 } print "end $n\\n"' ${marker}`;

/** Programs that carry it, not the shells that started them. */
export function countMarked(marker: string): number {
  return listProcesses().filter((line) => line.includes(marker) && !line.startsWith('bash ')).length;
}

/** Each of these, not all at once. */
export async function each<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const permits = new Semaphore(AT_ONCE);
  return Promise.all(items.map((item) => permits.run(() => work(item))));
}

/** Fails unless every line is there once and in order. Returns the times at which they were written. */
export function expectWhole(output: string): number[] {
  const lines = output.trimEnd().split('\n');
  const last = lines.pop();
  const numbers = lines.map((line) => Number(line.split(' ')[0]));
  expect(numbers).toEqual(lines.map((_, index) => index));
  expect(last).toBe(`end ${lines.length}`);
  return lines.map((line) => Number(line.split(' ')[1]));
}

/** Cells of sessions, as the host or the engine knows them. */
export async function countCells({ way, stateDirectory, server }: ServedSessions): Promise<number> {
  if (way.driver === 'oci') {
    return globSync(`${stateDirectory}/lasting-*/cells`).flatMap((folder) => readdirSync(folder)).length;
  }
  const folder = `${dataDirectoryOf(stateDirectory)}/volumes/`;
  const filters = encodeURIComponent(JSON.stringify({ label: ['hotcell.kind=session'] }));
  const containers = await engineApi().call<{ Mounts: { Source?: string; Destination: string }[] }[]>(
    'GET',
    `/containers/json?all=1&filters=${filters}`,
  );
  expect(server.process.exitCode).toBeNull();
  return containers.filter(({ Mounts }) => Mounts.some(({ Source }) => Source?.startsWith(folder))).length;
}

export function countMounts({ stateDirectory }: ServedSessions): number {
  const folder = join(dataDirectoryOf(stateDirectory), 'volumes/');
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.split(' ')[4]?.startsWith(folder)).length;
}

/** Kills everything in the cell in which a process carries this marker, as an operator or the kernel might. */
export async function endCell({ way }: ServedSessions, marker: string): Promise<void> {
  const pid = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').startsWith(`sleep\0${marker}\0`);
      } catch {
        return false;
      }
    });
  const groups = readFileSync(`/proc/${pid ?? 'none'}/cgroup`, 'utf8');
  if (way.driver === 'docker') {
    const id = /\/([0-9a-f]{64})/.exec(groups)?.[1] ?? '';
    await engineApi().call('DELETE', `/containers/${id}?force=1`);
  } else {
    const path = /\/hotcell\/(lasting-[0-9a-f]+\/[0-9a-f]+)\//.exec(groups)?.[1] ?? '';
    const [first = 0] = processesIn([`/hotcell/${path}/`]).filter(isFirstOfCell);
    // With its first process the kernel ends all others.
    process.kill(first, 'SIGKILL');
  }
  await waitFor('it is dead', () => countMarked(marker) === 0);
}

function isFirstOfCell(pid: number): boolean {
  return /^NSpid:\t\d+\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}
