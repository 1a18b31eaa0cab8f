import { HotcellServer, LAUNCHER } from '../server/hotcell-server.ts';
import { LANGUAGES } from '../support/hello.ts';
import { progress } from '../support/progress.ts';
import { runCommand } from '../support/run-command.ts';
import { summarize, type Summary } from '../support/statistics.ts';

export interface StartTimes {
  /** From the command until it says that it is ready: one cell of each language is hot then. */
  readonly ready: Summary;
  /** Until all cells of the pool are ready. */
  readonly full: Summary;
  readonly version: Summary;
  /** A Node that does nothing, which is in all of the above. */
  readonly bareNode: Summary;
}

const STARTS = 5;
const POOL_SIZE = 4;

export async function measureStart(scratch: string, rounds: number): Promise<StartTimes> {
  progress('start');
  const ready: number[] = [];
  const full: number[] = [];
  const version: number[] = [];
  const bareNode: number[] = [];
  for (let start = 0; start < STARTS; start++) {
    const startedAt = performance.now();
    await using server = await HotcellServer.start({ scratch, languages: LANGUAGES, poolSize: POOL_SIZE });
    await server.full();
    ready.push(server.readyMs);
    full.push(performance.now() - startedAt);
  }
  for (let round = 0; round < rounds; round++) {
    version.push(await timeOf([LAUNCHER, '--version']));
    bareNode.push(await timeOf([process.execPath, '-e', '0']));
  }
  return {
    ready: summarize(ready),
    full: summarize(full),
    version: summarize(version),
    bareNode: summarize(bareNode),
  };
}

async function timeOf(command: readonly [string, ...string[]]): Promise<number> {
  const { code, stderr, ms } = await runCommand(command);
  if (code !== 0) throw new Error(`${command.join(' ')}: exit ${code}: ${stderr}`);
  return ms;
}
