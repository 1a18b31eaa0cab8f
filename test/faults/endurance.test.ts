import { readFileSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { howOften } from '../support/endurance.ts';
import { findTraces, waitFor } from '../support/leftovers.ts';
import {
  cellProcesses,
  countMarked,
  instancesOf,
  makeMarker,
  readResidentBytes,
  runCode,
  settle,
  startServer,
  stopClean,
} from '../support/live-server.ts';
import { makeJobs } from '../support/mixed-jobs.ts';
import type { TestServer } from '../support/server.ts';

const RUNS = howOften(100, 1000);
const AT_ONCE = 4;
const MARKER = makeMarker();
const toJob = makeJobs(MARKER);
const GROWTH = 50 * 1024 * 1024;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => stopClean(server));

/** `count` jobs, AT_ONCE at a time. */
async function runMany(count: number): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const number = next++;
      const { language, body, expected } = toJob(number);
      const reply = await runCode(server, language, body);
      expect({ number, ...reply }).toMatchObject(expected);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Everything that a leak would make grow. */
async function countHoldings(): Promise<Record<string, number>> {
  await settle(server);
  const instances = instancesOf(server.stateDirectory);
  const { processes, cgroups, mounts } = findTraces(server.stateDirectory, instances);
  const [instance = ''] = instances;
  const below = (folder: string): number => readdirSync(folder, { recursive: true }).length;
  const cells = readdirSync(`${server.stateDirectory}/${instance}/cells`).length;
  return {
    processes: processes.length,
    cellProcesses: cellProcesses(instances).length,
    cgroups: cgroups.map(below).reduce((sum, count) => sum + count, 0),
    mounts: mounts.length,
    cells,
    records: readdirSync(`${server.stateDirectory}/${instance}/runtime`).length,
    descriptors: readdirSync(`/proc/${server.process.pid}/fd`).length,
    children: readFileSync(`/proc/${server.process.pid}/task/${server.process.pid}/children`, 'utf8')
      .trim()
      .split(' ').length,
  };
}

test(
  `[SC-02, CX-12] ${RUNS} runs, a tenth of them hostile: each answer is right and nothing grows`,
  { timeout: 120_000 + RUNS * 1000 },
  async () => {
    // Twice, because the first time makes what is kept for good: kits, buffers, compiled code.
    await runMany(Math.min(100, RUNS));
    const before = await countHoldings();
    const residentBefore = await readResidentBytes(server);

    await runMany(RUNS);

    let after = await countHoldings();
    const isAsBefore = async (): Promise<boolean> => {
      after = await countHoldings();
      return Object.entries(before).every(([name, count]) => after[name] === count);
    };
    // What is still on its way out gets the time to go; whatever stays is shown below.
    await waitFor('everything is as before', isAsBefore, 5000).catch(() => {});
    // Connections of the test's own client come and go: a few descriptors more or less are nobody's leak.
    const { descriptors = 0, ...others } = after;
    const { descriptors: descriptorsBefore = 0, ...othersBefore } = before;
    expect(others).toEqual(othersBefore);
    expect(descriptors).toBeLessThanOrEqual(descriptorsBefore + AT_ONCE);
    expect(countMarked(MARKER)).toBe(0);
    expect((await readResidentBytes(server)) - residentBefore).toBeLessThan(GROWTH);
  },
);
