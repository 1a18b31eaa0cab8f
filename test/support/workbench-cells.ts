import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { engineApi } from './docker-engine.ts';
import { engineThingsOf } from './footprint.ts';
import { findTraces, waitFor } from './leftovers.ts';
import type { SiteWords } from './workbench-site.ts';

/** The cells of workbenches that there are, by id, asked of the host and not of our code. */
export async function listCells({ driver, stateDirectory }: SiteWords): Promise<string[]> {
  if (driver === 'oci') {
    const instances = existsSync(stateDirectory) ? readdirSync(stateDirectory) : [];
    return instances.flatMap((instance) => {
      const folder = join(stateDirectory, instance, 'cells');
      return existsSync(folder) ? readdirSync(folder) : [];
    });
  }
  const things = await Promise.all([...makers].map((pid) => engineThingsOf(pid)));
  return things
    .flat()
    .filter(({ kind, labels }) => kind === 'container' && labels['hotcell.kind'] === 'session')
    .map(({ id }) => id);
}

/** Whose cells count in an engine, which other files of tests use at the same time. */
const makers = new Set([process.pid]);

/** From now on cells of this process count, too. */
export function countCellsOf(pid: number | undefined): void {
  if (pid !== undefined) makers.add(pid);
}

/** As somebody outside would: all of it at once. */
export async function killCell({ driver }: SiteWords, id: string): Promise<void> {
  if (driver === 'docker') {
    await engineApi().call('POST', `/containers/${id}/kill`);
    return;
  }
  const pids = pidsOf(id);
  if (pids.length === 0) throw new Error(`no process of cell ${id} was found`);
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone with the first, which is the init of the cell.
    }
  }
}

function pidsOf(id: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isIn(name, id))
    .map(Number);
}

function isIn(pid: string, id: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(`/${id}`);
  } catch {
    return false;
  }
}

/** What is left on the host of this site; nothing, when all is well. */
export async function remainsOf(words: SiteWords): Promise<string[]> {
  const { stateDirectory } = words;
  const { processes, cgroups, mounts, folders } = findTraces(stateDirectory);
  const own = `${stateDirectory}-workbench`;
  return [
    ...processes,
    ...cgroups,
    ...mounts,
    ...folders,
    ...(existsSync(own) ? readdirSync(own) : []),
    ...(await listCells(words)).map((id) => `cell ${id}`),
  ];
}

/** Containers take a moment to be removed after their end. */
export async function waitUntilNothingIsLeft(words: SiteWords): Promise<void> {
  await waitFor('nothing is left', async () => (await remainsOf(words)).length === 0).catch(
    async (error: unknown) => {
      throw new Error(`left: ${(await remainsOf(words)).join('; ')}`, { cause: error });
    },
  );
}
