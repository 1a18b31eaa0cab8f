import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';
import type { ExecuteReply } from '../../src/wire/execute.ts';
import { cellsOf, describeFootprint, footprintOf, processesIn } from './footprint.ts';
import { findTraces, listProcesses, waitFor } from './leftovers.ts';
import { TestServer, type ServerOptions, removeFolders } from './server.ts';

export { instancesOf } from './footprint.ts';

/** Small, so that a file does not spend its time on booting cells that nobody uses. */
export const POOL_SIZE = 2;

interface LiveServerOptions extends ServerOptions {
  /** All of them unless said: each of them boots cells, whoever uses it. */
  readonly languages?: readonly string[];
}

export function startServer({ languages, ...options }: LiveServerOptions = {}): Promise<TestServer> {
  const args = ['--set', `pool.size=${POOL_SIZE}`];
  if (languages !== undefined) {
    const unused = Object.keys(BUILT_IN_LANGUAGES).filter((name) => !languages.includes(name));
    const off = Object.fromEntries(unused.map((name) => [name, false]));
    args.push('--set', `languages=${JSON.stringify(off)}`);
  }
  return TestServer.start({ ...options, args: [...args, ...(options.args ?? [])] });
}

/** All samples of a metric, by their labels as Prometheus writes them. */
export async function readMetrics(server: TestServer, name: string): Promise<Map<string, number>> {
  return samplesOf(name, await readAllMetrics(server));
}

async function readAllMetrics(server: TestServer): Promise<string> {
  return (await fetch(`${server.url}/metrics`)).text();
}

function samplesOf(name: string, text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => new RegExp(`^${name}[ {]`).test(line));
  return new Map(
    lines.map((line) => [line.slice(name.length, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

export async function readResidentBytes(server: TestServer): Promise<number> {
  return (await readMetrics(server, 'hotcell_resident_memory_bytes')).get('') ?? Number.NaN;
}

/** Waits until nothing runs and every pool is full: no cell is being made or removed any more. */
export async function settle(server: TestServer, size = POOL_SIZE): Promise<void> {
  const isQuiet = async (): Promise<boolean> => {
    const metrics = await readAllMetrics(server);
    const running = samplesOf('hotcell_runs_running', metrics).get('') ?? 1;
    const ready = [...samplesOf('hotcell_cells_ready', metrics).values()];
    const isFull = ready.length > 0 && ready.every((cells) => cells >= size);
    if (running > 0 || !isFull) return false;
    // In a shared cell all those of a language wait.
    const isShared = server.way?.singleUse === false;
    const expected = ready.map((waiting) => (isShared ? Math.min(1, waiting) : waiting));
    return (await cellsOf(server)).length === expected.reduce((sum, cells) => sum + cells, 0);
  };
  await waitFor('the server comes to rest', isQuiet);
}

/** Host pids of everything that runs in a cell of one of these instances of the oci driver. */
export function cellProcesses(instances: readonly string[]): number[] {
  return processesIn(instances.map((id) => `/hotcell/${id}/`));
}

/** What is left on the host of these instances, in words; empty when nothing is. */
export function describeTraces(stateDirectory: string, instances: readonly string[]): string[] {
  const { processes, cgroups, mounts, folders } = findTraces(stateDirectory, instances);
  return [
    ...processes,
    ...cellProcesses(instances).map((pid) => `pid ${pid}`),
    ...cgroups,
    ...mounts,
    ...folders,
  ];
}

/**
 * Stops a server in good order and fails if it leaves anything behind.
 * It waits for rest first, so that a stop amid boots is the subject of one test and not of every file.
 */
export async function stopClean(server: TestServer, size = POOL_SIZE): Promise<void> {
  await settle(server, size);
  const footprint = await footprintOf(server);
  const code = await server.stop();
  const traces = await describeFootprint(footprint);
  removeFolders(server.stateDirectory);
  assert.deepEqual({ code, traces }, { code: 0, traces: [] });
}

/** A number that no other process has among its arguments: `sleep` takes it, and /proc shows it. */
export function makeMarker(): string {
  return String(randomInt(1_000_000_000, 2_000_000_000));
}

export function countMarked(marker: string): number {
  // The test's own worker may show the marker only in memory, never in its arguments.
  return listProcesses().filter((line) => line.includes(marker)).length;
}

export async function waitUntilGone(marker: string): Promise<void> {
  await waitFor(`no process carries ${marker}`, () => countMarked(marker) === 0);
}

/** Runs code and fails unless the answer is a result, whatever the result is. */
export async function runCode(
  server: TestServer,
  language: string,
  body: object | string,
): Promise<ExecuteReply> {
  const { status, body: reply } = await server
    .execute(language, typeof body === 'string' ? { code: body } : body)
    .catch((error: unknown) => {
      // "fetch failed" tells nobody why; the last words of a server that died do.
      const { exitCode, signalCode } = server.process;
      const state = `exit code ${exitCode}, signal ${signalCode}: ${server.output.slice(-2000)}`;
      throw new Error(`no answer from the server (${state})`, { cause: error });
    });
  assert.equal(status, 200, JSON.stringify(reply));
  return reply;
}

/** What an attack must not have changed: the next request gets the right answer. */
export async function expectServes(server: TestServer): Promise<void> {
  const programs = { bash: 'echo $((6 * 7))', python: 'print(6 * 7)' };
  // After every test: where each answer costs the boot of a cell, one of them has to do.
  const isCostly = server.way?.slowBoot === true && server.way.singleUse;
  const asked = Object.entries(programs).slice(0, isCostly ? 1 : 2);
  const replies = await Promise.all(asked.map(([language, code]) => runCode(server, language, code)));
  const told = replies.map(({ stdout, exit_code: exitCode }) => ({ stdout, exitCode }));
  assert.deepEqual(
    told,
    asked.map(() => ({ stdout: '42\n', exitCode: 0 })),
  );
}
