import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellServer } from '../server/hotcell-server.ts';
import { helloIn, type LanguageName } from '../support/hello.ts';
import { availableMemory, cpuOf, memoryOfTree } from '../support/processes.ts';
import { progress } from '../support/progress.ts';
import { median } from '../support/statistics.ts';

export interface CellCost {
  readonly language: LanguageName;
  /** Of all processes below the server, by their share of each page. Without the kernel's own memory. */
  readonly processBytes: number;
  /** What the whole machine has less, kernel included, and whatever others did in the meantime. */
  readonly machineBytes: number;
  /** CPU of the whole life of one cell, and how it divides. */
  readonly cpuMs: { readonly refill: number; readonly job: number; readonly server: number };
}

const FEW = 4;
const MANY = 24;
const JOBS = 24;
const SAMPLES = 5;

/** What one waiting cell holds, and what it costs to replace one that was used. */
export async function measureCells(scratch: string, languages: readonly LanguageName[]): Promise<CellCost[]> {
  const costs: CellCost[] = [];
  for (const language of languages) {
    progress(`cells: ${language}`);
    const few = await withPool(scratch, language, FEW, async (server) => ({
      memory: await readMemory(server),
      cpuMs: await measureRefill(server, language),
    }));
    const many = await withPool(scratch, language, MANY, readMemory);
    costs.push({
      language,
      processBytes: (many.processes - few.memory.processes) / (MANY - FEW),
      machineBytes: (few.memory.available - many.available) / (MANY - FEW),
      cpuMs: few.cpuMs,
    });
  }
  return costs;
}

async function withPool<Result>(
  scratch: string,
  language: LanguageName,
  poolSize: number,
  measure: (server: HotcellServer) => Promise<Result>,
): Promise<Result> {
  await using server = await HotcellServer.start({
    scratch,
    languages: [language],
    poolSize,
    settings: ['pool.memoryBytes=8g'],
  });
  await server.full();
  return await measure(server);
}

async function readMemory(server: HotcellServer): Promise<{ processes: number; available: number }> {
  const processes: number[] = [];
  const available: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    await sleep(200);
    processes.push(memoryOfTree(server.pid));
    available.push(availableMemory());
  }
  return { processes: median(processes), available: median(available) };
}

/**
 * The kernel books the CPU of a cell and of its runtime to the server when they have ended and were waited for.
 * So as many cells as jobs, each with its boot, its run and its end, are in the difference around a series of jobs.
 */
async function measureRefill(server: HotcellServer, language: LanguageName): Promise<CellCost['cpuMs']> {
  const body = JSON.stringify({ code: helloIn(language) });
  const settle = async (): Promise<void> => {
    // First sleep: each look at the pool is work for the server, which is measured too.
    await sleep(200);
    await server.full();
  };
  await settle();
  const before = cpuOf(server.pid);
  let jobMs = 0;
  for (let job = 0; job < JOBS; job++) {
    const { text } = await server.client.post(`/execute/${language}`, body);
    jobMs += (JSON.parse(text) as { receipt: { cpu_time_ms: number } }).receipt.cpu_time_ms;
    await settle();
  }
  const after = cpuOf(server.pid);
  return {
    refill: (after.endedChildrenMs - before.endedChildrenMs - jobMs) / JOBS,
    job: jobMs / JOBS,
    server: (after.ownMs - before.ownMs) / JOBS,
  };
}
